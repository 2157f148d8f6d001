package ai.synheart.auth.android

import ai.synheart.auth.RecordStorage
import ai.synheart.auth.RecordVersion
import ai.synheart.auth.StorageException
import ai.synheart.auth.StorageException.Code
import android.content.Context
import android.os.UserManager
import java.io.Closeable
import java.io.File
import java.io.IOException
import java.util.UUID

/**
 * Records as plain files of mode 0600 in the app's directory that backups leave out.
 *
 * A record holds nothing secret, and no key of the Keystore encrypts it: if the Keystore lost its keys, the record would be lost
 * too. In credential-encrypted storage everything is unavailable until the user has unlocked the device once since it started:
 * files there are "not found" until then.
 *
 * @param earlier opens records that an earlier version of this client encrypted
 */
internal class FileStorage(private val context: Context, private val earlier: EncryptedRecords) : RecordStorage {
    override fun read(name: String): ByteArray? = withDirectory { directory ->
        val bytes = directory.read(file(name)) ?: return@withDirectory null
        if (!EncryptedRecords.isEncrypted(bytes)) return@withDirectory bytes
        val opened = try {
            earlier.open(name, bytes)
        } catch (error: StorageException) {
            if (error.code == Code.DAMAGED) directory.copy(file(name), to = aside(name))
            throw error
        }
        migrate(directory, name, bytes, opened)
        opened
    }

    /** Replaces an encrypted record with the decrypted one, unless another holder has the record's lock, or the record has changed. */
    private fun migrate(directory: RecordDirectory, name: String, encrypted: ByteArray, opened: ByteArray) {
        try {
            directory.tryLock("$name.record.lock")?.use {
                if (directory.read(file(name)).contentEquals(encrypted)) directory.write(file(name), opened)
            }
        } catch (_: IOException) {
        }
    }

    override fun write(name: String, bytes: ByteArray): Unit = withDirectory { it.write(file(name), bytes) }

    override fun remove(name: String): Unit = withDirectory { it.remove(file(name)) }

    override fun setAside(name: String, bytes: ByteArray): Unit = withDirectory { it.write(aside(name), bytes) }

    override fun tryLock(name: String, scope: String): Closeable? = withDirectory { it.tryLock("$name.$scope.lock") }

    /** Does not ask whether the device is unlocked. Before the first unlock the file is not found, so the version is unknown. */
    override fun version(name: String): RecordVersion? = try {
        directory().version(file(name))
    } catch (_: StorageException) {
        null
    }

    /** Reads the canary (a test value) that the last check wrote, and writes another one, so that a damaged canary fails only one check. */
    override fun check(): Unit = withDirectory { directory ->
        val lock = directory.tryLock("$CANARY.lock") ?: throw IOException("another process checks the storage")
        lock.use {
            val isIntact = try { directory.read(CANARY)?.size.let { it == null || it == CANARY_SIZE } } catch (_: IOException) { false }
            val canary = UUID.randomUUID().toString().toByteArray()
            directory.write(CANARY, canary)
            if (!isIntact || !directory.read(CANARY).contentEquals(canary)) throw IOException("the canary is not what was written")
        }
    }

    private fun <Value> withDirectory(body: (RecordDirectory) -> Value): Value {
        if (!isUnlocked()) throw StorageException(Code.UNAVAILABLE, "the device was not unlocked since it started")
        try {
            return body(directory())
        } catch (error: OversizedFileException) {
            throw StorageException(Code.DAMAGED, "the record is too large", error)
        } catch (error: IOException) {
            throw StorageException(Code.UNAVAILABLE, "the storage cannot be reached now, or is full", error)
        }
    }

    private fun directory(): RecordDirectory {
        val parent: File? = context.noBackupFilesDir
        if (parent == null || !parent.isDirectory) throw StorageException(Code.UNAVAILABLE, "the app's storage is not there")
        return RecordDirectory(File(parent, "ai.synheart.auth"))
    }

    private fun isUnlocked(): Boolean =
        context.isDeviceProtectedStorage || context.getSystemService(UserManager::class.java)?.isUserUnlocked ?: true

    private fun file(name: String) = "$name.record"

    private fun aside(name: String) = "$name.unreadable"

    private companion object {
        const val CANARY = "canary"

        /** The length of the canary (a test value, a UUID as text), in bytes. */
        const val CANARY_SIZE = 36
    }
}
