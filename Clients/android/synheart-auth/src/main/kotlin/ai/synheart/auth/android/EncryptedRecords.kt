package ai.synheart.auth.android

import ai.synheart.auth.DeviceKeyStoreException
import ai.synheart.auth.StorageException
import ai.synheart.auth.StorageException.Code
import javax.crypto.AEADBadTagException
import javax.crypto.Cipher
import javax.crypto.SecretKey
import javax.crypto.spec.GCMParameterSpec

/**
 * Opens records that earlier versions of this client encrypted by an AES key in the Android Keystore.
 *
 * A file is a version byte, the IV of 12 bytes, and the AES-GCM ciphertext with its tag. The name of the record is authenticated.
 */
internal class EncryptedRecords(private val keystore: Keystore) {
    private val canary = AndroidKeyStore(keystore, AndroidKeyStore.Attestation.NEVER, usesStrongBox = false)

    /**
     * Decrypts the record in a file.
     *
     * @throws StorageException `UNAVAILABLE` while the Keystore is locked or busy, or its canary (a test key) fails;
     *   `DAMAGED` for any other failure. The client treats the record as damaged only if that failure persists
     */
    fun open(name: String, file: ByteArray): ByteArray = try {
        decrypted(name, file)
    } catch (error: StorageException) {
        if (error.code != Code.DAMAGED) throw error
        try {
            canary.check(KEY)
        } catch (unwell: DeviceKeyStoreException) {
            throw StorageException(Code.UNAVAILABLE, "the record cannot be opened now", unwell)
        }
        decrypted(name, file)
    }

    private fun decrypted(name: String, file: ByteArray): ByteArray = try {
        keystore.guarded {
            val key = keystore.key(KEY) as? SecretKey ?: throw damaged("the Keystore does not find the key of the records", null)
            if (file.size < HEADER + TAG) throw damaged("not a record", null)
            Cipher.getInstance("AES/GCM/NoPadding").run {
                init(Cipher.DECRYPT_MODE, key, GCMParameterSpec(TAG * Byte.SIZE_BITS, file, 1, IV))
                updateAAD("synheart-auth/record/v1\n$name".toByteArray())
                doFinal(file, HEADER, file.size - HEADER)
            }
        }
    } catch (error: DeviceKeyStoreException) {
        val cause = error.cause
        throw when {
            cause is StorageException -> cause
            cause is AEADBadTagException -> damaged("the record does not belong to its key", cause)
            error.code == DeviceKeyStoreException.Code.UNAVAILABLE -> StorageException(Code.UNAVAILABLE, "the record cannot be opened now", error)
            else -> damaged("the key of the records cannot be used", error)
        }
    }

    private fun damaged(message: String, cause: Exception?) = StorageException(Code.DAMAGED, message, cause)

    companion object {
        private const val KEY = "synheart_auth_records"
        private const val VERSION: Byte = 1
        private const val IV = 12
        private const val TAG = 16
        private const val HEADER = 1 + IV

        /** Whether a file is encrypted. A plain record is JSON, which cannot begin with the version byte. */
        fun isEncrypted(file: ByteArray): Boolean = file.firstOrNull() == VERSION
    }
}
