package ai.synheart.auth.android

import ai.synheart.auth.DeviceKeyStoreException
import ai.synheart.auth.RecordStorage
import ai.synheart.auth.RecordVersion
import ai.synheart.auth.StorageException
import ai.synheart.auth.StorageException.Code
import android.content.Context
import android.os.UserManager
import java.io.Closeable
import java.io.File
import java.io.IOException
import javax.crypto.AEADBadTagException
import javax.crypto.Cipher
import javax.crypto.SecretKey
import javax.crypto.spec.GCMParameterSpec

/**
 * Records as files in the app's directory for files that are in no backup, encrypted by an AES key in the Android Keystore.
 *
 * In credential-encrypted storage everything is unavailable until the user has unlocked the device once since it started: files
 * there are "not found" until then.
 *
 * A file is a version byte, the IV of 12 bytes, and the AES-GCM ciphertext with its tag. The name of the record is authenticated, so
 * that one record cannot take another's place.
 */
internal class EncryptedStorage(private val context: Context, private val keystore: Keystore) : RecordStorage {
    override fun read(name: String): ByteArray? = withDirectory { directory ->
        val file = directory.read(file(name)) ?: return@withDirectory null
        val key = try {
            keystore.find(KEY)
        } catch (error: DeviceKeyStoreException) {
            throw if (error.isKeyLost) damaged(directory, name, "the key of the records is lost", error) else unavailable(error)
        }
        if (key !is SecretKey) throw damaged(directory, name, "the key of the records does not exist", null)
        if (file.size < HEADER + TAG || file[0] != VERSION) throw damaged(directory, name, "not a record", null)
        val opened = try {
            keystore.using {
                Cipher.getInstance(Keystore.TRANSFORMATION).run {
                    init(Cipher.DECRYPT_MODE, key, GCMParameterSpec(TAG * Byte.SIZE_BITS, file, 1, IV))
                    updateAAD(associated(name))
                    try { Opened(doFinal(file, HEADER, file.size - HEADER)) } catch (_: AEADBadTagException) { Opened(null) }
                }
            }
        } catch (error: DeviceKeyStoreException) {
            throw if (error.isKeyLost) damaged(directory, name, "the key of the records is lost", error) else unavailable(error)
        }
        opened.bytes ?: throw damaged(directory, name, "the record does not belong to its key", null)
    }

    override fun write(name: String, bytes: ByteArray): Unit = withDirectory { it.write(file(name), encrypted(it, name, bytes)) }

    override fun remove(name: String): Unit = withDirectory { it.remove(file(name)) }

    override fun setAside(name: String, bytes: ByteArray): Unit = withDirectory { it.write(aside(name), encrypted(it, aside(name), bytes)) }

    override fun tryLock(name: String, scope: String): Closeable? = withDirectory { it.tryLock("$name.$scope.lock") }

    override fun version(name: String): RecordVersion? = if (isUnlocked()) directory().version(file(name)) else null

    /** A key that is lost for good is replaced. Its records can never be read again, and stay damaged. */
    private fun encrypted(directory: RecordDirectory, name: String, bytes: ByteArray): ByteArray = try {
        try {
            sealed(underKeyLock(directory) { keystore.secretKey(KEY) }, name, bytes)
        } catch (error: DeviceKeyStoreException) {
            if (!error.isKeyLost) throw error
            sealed(underKeyLock(directory) { keystore.workingSecretKey(KEY) }, name, bytes)
        }
    } catch (error: DeviceKeyStoreException) {
        throw unavailable(error)
    }

    private fun sealed(key: SecretKey, name: String, bytes: ByteArray): ByteArray = keystore.using {
        Cipher.getInstance(Keystore.TRANSFORMATION).run {
            init(Cipher.ENCRYPT_MODE, key)
            updateAAD(associated(name))
            val sealed = doFinal(bytes)
            if (iv?.size != IV) throw DeviceKeyStoreException(DeviceKeyStoreException.Code.FAILED, "an IV of another length")
            byteArrayOf(VERSION) + iv + sealed
        }
    }

    /** Two processes that both find no usable key must not both make one: the second would replace the first's. */
    private fun underKeyLock(directory: RecordDirectory, body: () -> SecretKey): SecretKey {
        repeat(LOCK_ATTEMPTS) {
            directory.tryLock("key.lock")?.use { return body() }
            Thread.sleep(LOCK_PAUSE_MILLIS)
        }
        throw StorageException(Code.UNAVAILABLE, "another process holds the lock of the records' key")
    }

    /** The record is there and cannot be read again. A copy stays for whoever looks into it. */
    private fun damaged(directory: RecordDirectory, name: String, message: String, cause: Throwable?): StorageException {
        try { directory.copy(file(name), to = aside(name)) } catch (_: IOException) { }
        return StorageException(Code.DAMAGED, message, cause)
    }

    private fun <Value> withDirectory(body: (RecordDirectory) -> Value): Value {
        if (!isUnlocked()) throw StorageException(Code.UNAVAILABLE, "the device was not unlocked since it started")
        try {
            return body(directory())
        } catch (error: IOException) {
            throw unavailable(error)
        }
    }

    private fun directory(): RecordDirectory {
        val parent: File? = context.noBackupFilesDir
        if (parent == null || !parent.isDirectory) throw StorageException(Code.UNAVAILABLE, "the app's storage is not there")
        return RecordDirectory(File(parent, "ai.synheart.auth"))
    }

    private fun isUnlocked(): Boolean =
        context.isDeviceProtectedStorage || context.getSystemService(UserManager::class.java)?.isUserUnlocked ?: true

    private fun unavailable(error: Exception) = StorageException(Code.UNAVAILABLE, "the record cannot be reached now", error)

    private fun file(name: String) = "$name.record"

    private fun aside(name: String) = "$name.unreadable"

    private fun associated(name: String): ByteArray = "synheart-auth/record/v1\n$name".toByteArray()

    /** What decryption gave; null for a wrong tag, which is no failure of the Keystore. */
    private class Opened(val bytes: ByteArray?)

    private companion object {
        const val KEY = "synheart_auth_records"
        const val VERSION: Byte = 1
        const val IV = 12
        const val TAG = 16
        const val HEADER = 1 + IV
        const val LOCK_ATTEMPTS = 100
        const val LOCK_PAUSE_MILLIS = 50L
    }
}
