package ai.synheart.auth.android

import ai.synheart.auth.wire.hex
import ai.synheart.auth.wire.sha256
import android.content.Context
import android.os.UserManager
import android.security.keystore.KeyGenParameterSpec
import android.security.keystore.KeyProperties
import android.util.Log
import java.io.File
import java.io.IOException
import java.security.KeyStore
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.TimeUnit
import java.util.concurrent.locks.ReentrantLock
import javax.crypto.Cipher
import javax.crypto.KeyGenerator
import javax.crypto.SecretKey
import javax.crypto.spec.GCMParameterSpec

/** The storage cannot be read or written now, or the secret cannot be opened. */
internal class SecretsUnavailableException(message: String, cause: Throwable? = null) : Exception(message, cause)

/** Small secrets, by service and key. */
internal interface SecretStorage {
    /**
     * The secret; null only if there is none.
     *
     * @throws SecretsUnavailableException if it cannot be read now
     */
    fun read(service: String, key: String): ByteArray?

    /** Replaces the secret durably. */
    fun write(service: String, key: String, value: ByteArray)

    /** Removes the secret. Succeeds if there is none. */
    fun remove(service: String, key: String)
}

/**
 * Secrets as files in the app's directory that backups leave out, encrypted by an AES key in the Android Keystore.
 *
 * A wrong answer of the Keystore loses no secret. A key that seems lost is never replaced: the next write makes a key of the next
 * generation, under another name. Each file names its generation, so it can be read again when the Keystore returns its key
 * again.
 *
 * A file is a version byte, the generation, the IV of 12 bytes, and the AES-GCM ciphertext with its tag. Service and key are
 * authenticated, so that one secret cannot take another's place.
 *
 * @param pause waits before another attempt
 */
internal class RuntimeSecrets(private val context: Context, private val pause: (Long) -> Unit = { Thread.sleep(it) }) : SecretStorage {
    override fun read(service: String, key: String): ByteArray? = withDirectory { directory ->
        val file = directory.read(name(service, key)) ?: return@withDirectory null
        if (file.size < HEADER + TAG || file[0] != VERSION || file[1] !in 0 until GENERATIONS) {
            throw SecretsUnavailableException("the file is no secret")
        }
        val secretKey = find(file[1].toInt()) ?: throw SecretsUnavailableException("the Keystore does not give the secrets' key")
        Cipher.getInstance(TRANSFORMATION).run {
            init(Cipher.DECRYPT_MODE, secretKey, GCMParameterSpec(TAG * Byte.SIZE_BITS, file, 2, IV))
            updateAAD(associated(service, key))
            doFinal(file, HEADER, file.size - HEADER)
        }
    }

    override fun write(service: String, key: String, value: ByteArray): Unit = withDirectory { directory ->
        locked(directory) {
            val known = directory.read(GENERATION)?.singleOrNull()?.toInt()?.takeIf { it in 0 until GENERATIONS }
            val file = known?.let { seal(service, key, value, it, mayCreate = false) } ?: underNewKey(directory, service, key, value, known)
            directory.write(name(service, key), file)
        }
    }

    /** Encrypts under a key of the next generation. The generation is recorded before the secret's file is written: so a generation that is
     * not recorded has no secrets, and its key may be replaced. */
    private fun underNewKey(directory: RecordDirectory, service: String, key: String, value: ByteArray, known: Int?): ByteArray {
        if (known != null) Log.println(Log.ERROR, RuntimeParts.TAG, "secure_store: the secrets' key does not work; a new one is made")
        val next = if (known == null) 0 else (known + 1) % GENERATIONS
        val file = seal(service, key, value, next, mayCreate = true) ?: throw SecretsUnavailableException("the Keystore makes no key that works")
        directory.write(GENERATION, byteArrayOf(next.toByte()))
        return file
    }

    override fun remove(service: String, key: String): Unit = withDirectory { it.remove(name(service, key)) }

    /** The file of a secret; null if the key of this generation does not work for two seconds. */
    private fun seal(service: String, key: String, value: ByteArray, generation: Int, mayCreate: Boolean): ByteArray? {
        for (millis in PAUSES) {
            try {
                val secretKey = find(generation) ?: if (mayCreate) create(generation) else null
                if (secretKey != null) return sealed(secretKey, service, key, value, generation)
            } catch (_: Exception) {
            }
            if (millis > 0) pause(millis)
        }
        return null
    }

    private fun sealed(secretKey: SecretKey, service: String, key: String, value: ByteArray, generation: Int): ByteArray =
        Cipher.getInstance(TRANSFORMATION).run {
            init(Cipher.ENCRYPT_MODE, secretKey)
            updateAAD(associated(service, key))
            val sealed = doFinal(value)
            if (iv?.size != IV) throw IOException("an IV of another length")
            byteArrayOf(VERSION, generation.toByte()) + iv + sealed
        }

    private fun find(generation: Int): SecretKey? =
        KeyStore.getInstance(PROVIDER).run {
            load(null)
            getKey(alias(generation), null) as? SecretKey
        }

    private fun create(generation: Int): SecretKey {
        val spec = KeyGenParameterSpec.Builder(alias(generation), KeyProperties.PURPOSE_ENCRYPT or KeyProperties.PURPOSE_DECRYPT)
            .setBlockModes(KeyProperties.BLOCK_MODE_GCM)
            .setEncryptionPaddings(KeyProperties.ENCRYPTION_PADDING_NONE)
            .setKeySize(AES_BITS)
            .build()
        return KeyGenerator.getInstance(KeyProperties.KEY_ALGORITHM_AES, PROVIDER).run {
            init(spec)
            generateKey()
        }
    }

    /** Only one thread of one process at a time writes, so that all use one key. */
    private fun locked(directory: RecordDirectory, body: () -> Unit): Unit = synchronized(writing) {
        repeat(LOCK_ATTEMPTS) {
            directory.tryLock("secrets.lock")?.use { return body() }
            pause(LOCK_PAUSE_MILLIS)
        }
        throw SecretsUnavailableException("another process holds the lock of the secrets")
    }

    private fun <Value> withDirectory(body: (RecordDirectory) -> Value): Value = try {
        body(directory())
    } catch (error: SecretsUnavailableException) {
        throw error
    } catch (error: Exception) {
        throw SecretsUnavailableException("the secrets cannot be reached now", error)
    }

    /**
     * The folder of the runtime's secrets and of the locks for its functions.
     *
     * @throws SecretsUnavailableException until the user has unlocked the device once since it started
     */
    fun directory(): RecordDirectory {
        val isUnlocked = context.isDeviceProtectedStorage || context.getSystemService(UserManager::class.java)?.isUserUnlocked ?: true
        val parent: File? = context.noBackupFilesDir
        if (!isUnlocked || parent == null || !parent.isDirectory) throw SecretsUnavailableException("the app's storage is not there")
        return RecordDirectory(File(parent, "ai.synheart.auth.runtime"))
    }

    // The secrets of device-protected storage have separate keys. The keys of identities have the same prefix there.
    private fun alias(generation: Int) =
        (if (context.isDeviceProtectedStorage) "device_protected/" else "") + "synheart_runtime_secrets_$generation"

    /** The length comes first, so that no two pairs share a name. */
    private fun pair(service: String, key: String) = "secure ${service.toByteArray().size} $service $key".toByteArray()

    private fun name(service: String, key: String) = "${sha256(pair(service, key)).hex()}.secret"

    private fun associated(service: String, key: String) = "synheart-auth/runtime-secret/v1\n".toByteArray() + pair(service, key)

    private companion object {
        val writing = Any()
        const val PROVIDER = "AndroidKeyStore"
        const val TRANSFORMATION = "AES/GCM/NoPadding"
        const val AES_BITS = 256
        const val VERSION: Byte = 1
        const val IV = 12
        const val TAG = 16
        const val HEADER = 2 + IV
        const val GENERATION = "generation"

        /** After this many generations, the names repeat. */
        const val GENERATIONS = 64
        const val LOCK_ATTEMPTS = 100
        const val LOCK_PAUSE_MILLIS = 50L

        /** 1.9 s in total, and no pause after the last attempt. */
        val PAUSES = longArrayOf(100, 200, 400, 600, 600, 0)
    }
}

/**
 * The storage in which an earlier release of the app kept the runtime's secrets, such as `EncryptedSharedPreferences`. A secret
 * is moved when it is first loaded. The functions may block, and may throw: then the secret is unavailable for now.
 */
public interface EarlierSecrets {
    /** The secret; null only if there is none. */
    public fun load(service: String, key: String): String?

    /** Deletes a secret. Succeeds if there is none. */
    public fun delete(service: String, key: String)
}

/** Secrets that move from an earlier storage when they are first read. */
internal class AdoptingSecrets(private val secrets: SecretStorage, private val earlier: EarlierSecrets) : SecretStorage {
    private val locks = ConcurrentHashMap<Pair<String, String>, ReentrantLock>()

    override fun read(service: String, key: String): ByteArray? = secrets.read(service, key) ?: adopt(service, key)

    private fun adopt(service: String, key: String): ByteArray? = alone(service, key) {
        secrets.read(service, key)?.let { return@alone it }
        val found = asking { earlier.load(service, key) }?.toByteArray() ?: return@alone null
        try { write(service, key, found) } catch (_: SecretsUnavailableException) { }
        found
    }

    // The new copy is the valid one, even if the earlier copy remains.
    override fun write(service: String, key: String, value: ByteArray): Unit = alone(service, key) {
        secrets.write(service, key, value)
        try { earlier.delete(service, key) } catch (_: Exception) { }
    }

    // Delete the earlier copy first: if only the new one were deleted, the secret would come back.
    override fun remove(service: String, key: String): Unit = alone(service, key) {
        asking { earlier.delete(service, key) }
        secrets.remove(service, key)
    }

    /** Makes one change of a secret at a time: an adopted value must not replace a value written meanwhile. The app's functions may
     * hang, so the wait is limited. */
    private fun <Value> alone(service: String, key: String, body: () -> Value): Value {
        val lock = locks.getOrPut(service to key) { ReentrantLock() }
        if (!lock.tryLock(LOCK_SECONDS, TimeUnit.SECONDS)) throw SecretsUnavailableException("the secret is being changed")
        try {
            return body()
        } finally {
            lock.unlock()
        }
    }

    private fun <Value> asking(body: () -> Value): Value = try {
        body()
    } catch (error: Exception) {
        throw SecretsUnavailableException("the earlier storage cannot be asked now", error)
    }

    private companion object {
        const val LOCK_SECONDS = 5L
    }
}
