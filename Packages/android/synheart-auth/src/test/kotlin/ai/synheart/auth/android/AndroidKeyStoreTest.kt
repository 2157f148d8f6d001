package ai.synheart.auth.android

import ai.synheart.auth.DeviceKeyStoreException.Code
import ai.synheart.auth.android.PhoneRule.Companion.ALIAS
import ai.synheart.auth.android.PhoneRule.Companion.CHALLENGE
import ai.synheart.standins.KeystoreDaemon
import ai.synheart.standins.KeystoreDaemon.Call
import android.os.Build
import android.security.KeyStoreException
import java.security.KeyFactory
import java.security.Signature
import java.security.spec.X509EncodedKeySpec
import org.junit.Assert.assertArrayEquals
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertNotNull
import org.junit.Assert.assertNull
import org.junit.Assert.assertTrue
import org.junit.Rule
import org.junit.Test

class AndroidKeyStoreTest {
    @get:Rule
    val phone = PhoneRule()

    private val message = "message".toByteArray()

    private fun verifies(spki: ByteArray, signature: ByteArray): Boolean = Signature.getInstance("SHA256withECDSA").run {
        initVerify(KeyFactory.getInstance("EC").generatePublic(X509EncodedKeySpec(spki)))
        update(message)
        verify(signature)
    }

    // Life

    @Test
    fun `a key signs, survives the process, and is deleted`() {
        val key = phone.keys().create(ALIAS, CHALLENGE)
        assertEquals(91, key.size)
        assertTrue(verifies(key, phone.keys().sign(ALIAS, message)))
        phone.restart()
        assertArrayEquals(key, phone.keys().load(ALIAS))
        phone.keys().delete(ALIAS)
        assertNull(phone.keys().load(ALIAS))
        phone.keys().delete(ALIAS)
    }

    @Test
    fun `a new key replaces one of the same name`() {
        val first = phone.keys().create(ALIAS, CHALLENGE)
        val second = phone.keys().create(ALIAS, CHALLENGE)
        assertFalse(first.contentEquals(second))
        assertArrayEquals(second, phone.keys().load(ALIAS))
    }

    @Test
    fun `a key lives in the StrongBox, where there is one`() {
        phone.keys().create(ALIAS, CHALLENGE)
        assertEquals(true, phone.keystore.isInStrongBox(ALIAS))
        phone.keystore.hasStrongBox = false
        phone.keys().create(ALIAS, CHALLENGE)
        assertEquals(false, phone.keystore.isInStrongBox(ALIAS))
        assertEquals(0, phone.pauses)
    }

    @Test
    fun `a key lives in the TEE if the configuration says so, and before Android 9`() {
        phone.keys(usesStrongBox = false).create(ALIAS, CHALLENGE)
        assertEquals(false, phone.keystore.isInStrongBox(ALIAS))
        Build.VERSION.SDK_INT = 26
        phone.keys().create(ALIAS, CHALLENGE)
        assertEquals(false, phone.keystore.isInStrongBox(ALIAS))
    }

    @Test
    fun `a missing StrongBox costs no pause on any version`() {
        phone.keystore.hasStrongBox = false
        for (version in listOf(28, 30, 31, 33, 34, 36)) {
            Build.VERSION.SDK_INT = version
            phone.keys().create(ALIAS, CHALLENGE)
            assertEquals(0, phone.pauses)
        }
    }

    // Attestation

    @Test
    fun `the key's attestation names the challenge and the hardware`() {
        for ((hasStrongBox, level) in listOf(true to 2, false to 1)) {
            phone.keystore.hasStrongBox = hasStrongBox
            phone.keys().create(ALIAS, CHALLENGE)
            val chain = Keystore().chain(ALIAS)
            assertEquals(4, chain.size)
            val description = KeyDescription.of(chain.first())!!
            assertEquals(level, description.securityLevel)
            assertArrayEquals(CHALLENGE, description.challenge)
            assertNull(KeyDescription.of(chain[1]))
        }
    }

    @Test
    fun `a device that cannot attest still makes a key, if that is allowed`() {
        phone.keystore.attestation = KeystoreDaemon.Attestation.REFUSED
        assertNotNull(phone.keys().create(ALIAS, CHALLENGE))
        assertEquals(true, phone.keystore.isInStrongBox(ALIAS))
        expect(Code.FAILED) { phone.keys(AndroidKeyStore.Attestation.ALWAYS).create(ALIAS, CHALLENGE) }
    }

    @Test
    fun `keys are not attested where the app sends a token alone`() {
        val keys = phone.keys(AndroidKeyStore.Attestation.NEVER)
        assertFalse(keys.attestsKeys)
        keys.create(ALIAS, CHALLENGE)
        assertEquals(1, Keystore().chain(ALIAS).size)
    }

    @Test
    fun `attestation keys that are not provisioned yet are asked for again, then done without`() {
        phone.keystore.failNext(Call.GENERATE, KeystoreDaemon.OUT_OF_KEYS, KeystoreDaemon.OUT_OF_KEYS)
        phone.keystore.failAlways(Call.GENERATE, KeystoreDaemon.OUT_OF_KEYS, KeyStoreException.RETRY_WHEN_CONNECTIVITY_AVAILABLE)
        expect(Code.UNAVAILABLE) { phone.keys().create(ALIAS, CHALLENGE) }
        phone.keystore.failAlways(Call.GENERATE, 0)
        assertNotNull(phone.keys().create(ALIAS, CHALLENGE))
    }

    @Test
    fun `a device whose provisioning was refused for good makes a key without attestation at once`() {
        // StrongBox and TEE: RETRY_NEVER.
        phone.keystore.failNext(Call.GENERATE, KeystoreDaemon.OUT_OF_KEYS, KeystoreDaemon.OUT_OF_KEYS)
        phone.keys().create(ALIAS, CHALLENGE)
        assertEquals(0, phone.pauses)
        assertEquals(1, Keystore().chain(ALIAS).size)
    }

    @Test
    fun `hardware that is busy gets two more chances before the next way`() {
        phone.keystore.failNext(Call.GENERATE, KeystoreDaemon.SECURE_HW_BUSY, KeystoreDaemon.SECURE_HW_BUSY)
        phone.keys().create(ALIAS, CHALLENGE)
        assertEquals(true, phone.keystore.isInStrongBox(ALIAS))
        assertEquals(2, phone.pauses)
        phone.keystore.failNext(Call.GENERATE, KeystoreDaemon.SECURE_HW_BUSY, KeystoreDaemon.SECURE_HW_BUSY, KeystoreDaemon.SECURE_HW_BUSY)
        phone.keys().create(ALIAS, CHALLENGE)
        assertEquals(false, phone.keystore.isInStrongBox(ALIAS))
        assertEquals(4, Keystore().chain(ALIAS).size)
    }

    // Failures

    private val transient = listOf(
        KeystoreDaemon.SYSTEM_ERROR, KeystoreDaemon.LOCKED, KeystoreDaemon.UNINITIALIZED, KeystoreDaemon.SECURE_HW_BUSY,
        KeystoreDaemon.SECURE_HW_COMMUNICATION_FAILED, KeystoreDaemon.TOO_MANY_OPERATIONS, KeystoreDaemon.DEVICE_LOCKED,
        KeystoreDaemon.KEY_USER_NOT_AUTHENTICATED, KeystoreDaemon.UNKNOWN_ERROR, KeystoreDaemon.PERMISSION_DENIED,
    )

    @Test
    fun `a daemon that fails never makes a key absent or lost, on any version`() {
        val key = phone.keys().create(ALIAS, CHALLENGE)
        for (version in listOf(26, 28, 30, 31, 33, 34, 36)) {
            Build.VERSION.SDK_INT = version
            for (code in transient) {
                phone.keystore.failEverything(code)
                expect(Code.UNAVAILABLE) { phone.keys().load(ALIAS) }
                expect(Code.UNAVAILABLE) { phone.keys().sign(ALIAS, message) }
                phone.keystore.failEverything(0)
                assertArrayEquals(key, phone.keys().load(ALIAS))
            }
        }
    }

    @Test
    fun `a look-up that fails between two that work never makes a key absent`() {
        phone.keys().create(ALIAS, CHALLENGE)
        for (version in listOf(30, 36)) {
            Build.VERSION.SDK_INT = version
            // One failed call at each of the first calls that a load makes.
            for (before in 0..5) {
                repeat(before) { phone.keystore.failNext(Call.GET, 0) }
                phone.keystore.failNext(Call.GET, KeystoreDaemon.SYSTEM_ERROR)
                try {
                    assertNotNull(phone.keys().load(ALIAS))
                } catch (error: ai.synheart.auth.DeviceKeyStoreException) {
                    assertEquals(Code.UNAVAILABLE, error.code)
                }
                phone.keystore.works()
                assertNotNull(phone.keys().load(ALIAS))
            }
        }
    }

    @Test
    fun `Android 11's daemon restarts and reports every key as absent, and the key comes back`() {
        Build.VERSION.SDK_INT = 30
        val key = phone.keys().create(ALIAS, CHALLENGE)
        phone.keystore.failEverything(KeystoreDaemon.SYSTEM_ERROR)
        expect(Code.UNAVAILABLE) { phone.keys().load(ALIAS) }
        // It works again between the first look and the canary's.
        phone.keystore.failEverything(0)
        phone.keystore.failNext(Call.GET, KeystoreDaemon.SYSTEM_ERROR, KeystoreDaemon.SYSTEM_ERROR)
        assertArrayEquals(key, phone.keys().load(ALIAS))
        assertEquals(1, phone.pauses)
    }

    @Test
    fun `a key that is not there is believed after a second look, while the canary works`() {
        assertNull(phone.keys().load(ALIAS))
        assertEquals(1, phone.pauses)
        phone.keys().create(ALIAS, CHALLENGE)
        phone.keystore.lose(ALIAS)
        assertNull(phone.keys().load(ALIAS))
        expect(Code.NOT_FOUND) { phone.keys().sign(ALIAS, message) }
    }

    @Test
    fun `a key that is not there is not believed while the canary cannot be used`() {
        phone.keystore.failAlways(Call.CIPHER_START, KeystoreDaemon.SYSTEM_ERROR)
        expect(Code.UNAVAILABLE) { phone.keys().load(ALIAS) }
    }

    @Test
    fun `a key that comes back at the second look is there`() {
        Build.VERSION.SDK_INT = 30
        val key = phone.keys().create(ALIAS, CHALLENGE)
        phone.keystore.failNext(Call.GET, KeystoreDaemon.SYSTEM_ERROR, KeystoreDaemon.SYSTEM_ERROR)
        assertArrayEquals(key, phone.keys().load(ALIAS))
    }

    @Test
    fun `a key that the system invalidated is lost`() {
        for (version in listOf(30, 36)) {
            Build.VERSION.SDK_INT = version
            phone.keys().create(ALIAS, CHALLENGE)
            phone.keystore.failAlways(Call.SIGN_START, KeystoreDaemon.KEY_PERMANENTLY_INVALIDATED)
            expect(Code.INVALIDATED) { phone.keys().sign(ALIAS, message) }
            phone.keystore.failAlways(Call.SIGN_START, 0)
            phone.keys().sign(ALIAS, message)
        }
    }

    @Test
    fun `a key that the hardware no longer knows, as after a restore, is lost`() {
        for (version in listOf(28, 31, 33, 36)) {
            Build.VERSION.SDK_INT = version
            for (code in listOf(KeystoreDaemon.INVALID_KEY_BLOB, KeystoreDaemon.VALUE_CORRUPTED)) {
                phone.keys().create(ALIAS, CHALLENGE)
                phone.keystore.failAlways(Call.SIGN_START, code)
                expect(Code.INVALIDATED) { phone.keys().sign(ALIAS, message) }
                phone.keystore.failAlways(Call.SIGN_START, 0)
            }
        }
    }

    @Test
    fun `a key that seems lost once is not lost`() {
        phone.keys().create(ALIAS, CHALLENGE)
        phone.keystore.failNext(Call.SIGN_START, KeystoreDaemon.INVALID_KEY_BLOB)
        phone.keys().sign(ALIAS, message)
        phone.keystore.failNext(Call.SIGN_START, KeystoreDaemon.INVALID_KEY_BLOB, KeystoreDaemon.SYSTEM_ERROR)
        expect(Code.UNAVAILABLE) { phone.keys().sign(ALIAS, message) }
    }

    @Test
    fun `no key is lost while the hardware knows none`() {
        phone.keys().create(ALIAS, CHALLENGE)
        phone.keystore.failAlways(Call.SIGN_START, KeystoreDaemon.INVALID_KEY_BLOB)
        phone.keystore.failAlways(Call.CIPHER_START, KeystoreDaemon.INVALID_KEY_BLOB)
        expect(Code.UNAVAILABLE) { phone.keys().sign(ALIAS, message) }
    }

    @Test
    fun `an operation that the hardware dropped is started again, once`() {
        val key = phone.keys().create(ALIAS, CHALLENGE)
        phone.keystore.failNext(Call.SIGN_FINISH, KeystoreDaemon.INVALID_OPERATION_HANDLE)
        assertTrue(verifies(key, phone.keys().sign(ALIAS, message)))
        phone.keystore.failAlways(Call.SIGN_FINISH, KeystoreDaemon.INVALID_OPERATION_HANDLE)
        val started = phone.keystore.count(Call.SIGN_START)
        expect(Code.UNAVAILABLE) { phone.keys().sign(ALIAS, message) }
        assertEquals(2, phone.keystore.count(Call.SIGN_START) - started)
    }

    @Test
    fun `certificates that the Keystore withholds do not make a key absent`() {
        phone.keys().create(ALIAS, CHALLENGE)
        phone.keystore.failNext(Call.GET, 0, KeystoreDaemon.SYSTEM_ERROR)
        expect(Code.UNAVAILABLE) { phone.keys().load(ALIAS) }
    }

    @Test
    fun `a key that cannot be deleted now is an error`() {
        phone.keys().create(ALIAS, CHALLENGE)
        phone.keystore.failNext(Call.DELETE, KeystoreDaemon.SYSTEM_ERROR)
        expect(Code.UNAVAILABLE) { phone.keys().delete(ALIAS) }
    }

    @Test
    fun `hardware that fails for every key is unavailable, not unable`() {
        phone.keystore.failAlways(Call.GENERATE, KeystoreDaemon.SYSTEM_ERROR)
        expect(Code.UNAVAILABLE) { phone.keys().create(ALIAS, CHALLENGE) }
    }
}
