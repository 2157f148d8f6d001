package ai.synheart.auth.android

import ai.synheart.auth.DeviceKeyStoreException.Code
import ai.synheart.auth.android.PhoneRule.Companion.ALIAS
import ai.synheart.auth.android.PhoneRule.Companion.CHALLENGE
import ai.synheart.standins.KeystoreDaemon
import ai.synheart.standins.KeystoreDaemon.Call
import android.os.Build
import android.os.SystemClock
import android.security.StandInKeyStoreExceptions.Provisioning
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
        phone.keystore.failAlways(Call.GENERATE, KeystoreDaemon.OUT_OF_KEYS, Provisioning.PENDING_CONNECTIVITY)
        expect(Code.UNAVAILABLE) { phone.keys(AndroidKeyStore.Attestation.ALWAYS).create(ALIAS, CHALLENGE) }
        assertEquals(1, phone.keys().run {
            create(ALIAS, CHALLENGE)
            Keystore().chain(ALIAS).size
        })
        phone.keystore.failAlways(Call.GENERATE, 0)
        assertNotNull(phone.keys().create(ALIAS, CHALLENGE))
    }

    @Test
    fun `Android 12 gives no cause when its attestation keys are used up, and is asked again`() {
        for (version in 31..32) {
            Build.VERSION.SDK_INT = version
            phone.keystore.failAlways(Call.GENERATE, KeystoreDaemon.OUT_OF_KEYS)
            expect(Code.UNAVAILABLE) { phone.keys(AndroidKeyStore.Attestation.ALWAYS).create(ALIAS, CHALLENGE) }
            val keys = phone.keys(usesStrongBox = false)
            keys.create(ALIAS, CHALLENGE)
            assertTrue(keys.mayAttestLater(ALIAS))
            phone.keystore.works()
        }
    }

    @Test
    fun `a device whose provisioning was refused for good makes a key without attestation at once`() {
        // The provisioning server refuses new attestation keys for the StrongBox and then for the TEE, with RETRY_NEVER.
        phone.keystore.failNext(Call.GENERATE, KeystoreDaemon.OUT_OF_KEYS, KeystoreDaemon.OUT_OF_KEYS)
        phone.keys().create(ALIAS, CHALLENGE)
        assertEquals(0, phone.pauses)
        assertEquals(1, Keystore().chain(ALIAS).size)
    }

    @Test
    fun `busy hardware is retried twice before the next kind of hardware is used`() {
        phone.keystore.failNext(Call.GENERATE, KeystoreDaemon.SECURE_HW_BUSY, KeystoreDaemon.SECURE_HW_BUSY)
        phone.keys().create(ALIAS, CHALLENGE)
        assertEquals(true, phone.keystore.isInStrongBox(ALIAS))
        assertEquals(2, phone.pauses)
        phone.keystore.failNext(Call.GENERATE, KeystoreDaemon.SECURE_HW_BUSY, KeystoreDaemon.SECURE_HW_BUSY, KeystoreDaemon.SECURE_HW_BUSY)
        phone.keys().create(ALIAS, CHALLENGE)
        assertEquals(false, phone.keystore.isInStrongBox(ALIAS))
        assertEquals(4, Keystore().chain(ALIAS).size)
    }

    @Test
    fun `the key store waits for a silent provisioning server once for each kind of hardware`() {
        phone.keystore.failAlways(Call.GENERATE, KeystoreDaemon.OUT_OF_KEYS_TRANSIENT)
        phone.keystore.duringFailure = Runnable { SystemClock.offsetMillis += 10_000 }
        val keys = phone.keys(usesStrongBox = false)
        keys.create(ALIAS, CHALLENGE)
        assertEquals(1, Keystore().chain(ALIAS).size)
        assertTrue(keys.mayAttestLater(ALIAS))
        // Three calls: the failed attempt, the key, and its canary (a test key).
        assertEquals(3, phone.keystore.count(Call.GENERATE))
        expect(Code.UNAVAILABLE) { phone.keys(AndroidKeyStore.Attestation.ALWAYS).create(ALIAS, CHALLENGE) }
        assertEquals(5, phone.keystore.count(Call.GENERATE))
        assertEquals(0, phone.pauses)
    }

    // Failures

    private val temporary = listOf(
        KeystoreDaemon.SYSTEM_ERROR, KeystoreDaemon.LOCKED, KeystoreDaemon.UNINITIALIZED, KeystoreDaemon.SECURE_HW_BUSY,
        KeystoreDaemon.SECURE_HW_COMMUNICATION_FAILED, KeystoreDaemon.TOO_MANY_OPERATIONS, KeystoreDaemon.DEVICE_LOCKED,
        KeystoreDaemon.KEY_USER_NOT_AUTHENTICATED, KeystoreDaemon.KEY_RATE_LIMIT_EXCEEDED, KeystoreDaemon.INVALID_OPERATION_HANDLE,
    )
    private val suspicious = listOf(
        KeystoreDaemon.INVALID_KEY_BLOB, KeystoreDaemon.VALUE_CORRUPTED, KeystoreDaemon.UNKNOWN_ERROR, KeystoreDaemon.PERMISSION_DENIED,
        KeystoreDaemon.UNIMPLEMENTED,
    )
    private val versions = listOf(26, 28, 30, 31, 33, 34, 36)

    private fun eachVersion(body: () -> Unit) = versions.forEach {
        Build.VERSION.SDK_INT = it
        body()
    }

    @Test
    fun `an answer with a documented retry is temporary, on any version`() = eachVersion {
        phone.keys().create(ALIAS, CHALLENGE)
        for (code in temporary) {
            phone.keystore.failAlways(Call.SIGN_START, code)
            expect(Code.UNAVAILABLE) { phone.keys().sign(ALIAS, message) }
            phone.keystore.works()
        }
    }

    @Test
    fun `any other answer makes the key suspicious, on any version`() = eachVersion {
        phone.keys().create(ALIAS, CHALLENGE)
        for (code in suspicious) {
            phone.keystore.failAlways(Call.SIGN_START, code)
            expect(Code.FAILED) { phone.keys().sign(ALIAS, message) }
            phone.keystore.works()
        }
    }

    @Test
    fun `from Android 13 on, the text of the daemon's message is ignored`() {
        // The message is about keys that were not found, but the code is that of a locked device.
        for (version in listOf(33, 36)) {
            Build.VERSION.SDK_INT = version
            phone.keys().create(ALIAS, CHALLENGE)
            phone.keystore.failAlways(Call.GET, KeystoreDaemon.LOCKED)
            expect(Code.UNAVAILABLE) { phone.keys().load(ALIAS) }
            phone.keystore.works()
        }
    }

    @Test
    fun `a key that the system invalidated is final where an operation starts, and suspicious at a look-up`() = eachVersion {
        phone.keys().create(ALIAS, CHALLENGE)
        phone.keystore.failAlways(Call.SIGN_START, KeystoreDaemon.KEY_PERMANENTLY_INVALIDATED)
        expect(Code.INVALIDATED) { phone.keys().sign(ALIAS, message) }
        phone.keystore.works()
        phone.keystore.failAlways(Call.GET, KeystoreDaemon.KEY_PERMANENTLY_INVALIDATED)
        expect(Code.FAILED) { phone.keys().sign(ALIAS, message) }
        phone.keystore.works()
    }

    @Test
    fun `a key that is not found is absent, which the client does not believe at once`() {
        assertNull(phone.keys().load(ALIAS))
        expect(Code.NOT_FOUND) { phone.keys().sign(ALIAS, message) }
    }

    // The canary

    @Test
    fun `the canary has the level of the key, and is made with it`() {
        for (usesStrongBox in listOf(true, false)) {
            phone.keys(usesStrongBox = usesStrongBox).create(ALIAS, CHALLENGE)
            assertEquals(usesStrongBox, phone.keystore.isInStrongBox(AndroidKeyStore.canary(ALIAS)))
            phone.keys(usesStrongBox = usesStrongBox).check(ALIAS)
        }
        phone.keys().delete(ALIAS)
        assertEquals(emptyList<String>(), phone.keystore.aliases())
    }

    @Test
    fun `a canary that is gone, or that the system invalidated, is made again`() {
        phone.keys().create(ALIAS, CHALLENGE)
        val canary = AndroidKeyStore.canary(ALIAS)
        phone.keystore.lose(canary)
        phone.keys().check(ALIAS)
        assertTrue(canary in phone.keystore.aliases())
        phone.keystore.failNext(Call.SIGN_START, KeystoreDaemon.KEY_PERMANENTLY_INVALIDATED)
        phone.keys().check(ALIAS)
    }

    @Test
    fun `while the StrongBox fails, no canary elsewhere says that a key in it is lost`() {
        phone.keys().create(ALIAS, CHALLENGE)
        val canary = AndroidKeyStore.canary(ALIAS)
        for ((code, outcome) in listOf(
            KeystoreDaemon.UNKNOWN_ERROR to Code.FAILED, KeystoreDaemon.SECURE_HW_COMMUNICATION_FAILED to Code.UNAVAILABLE,
        )) {
            phone.keystore.lose(canary)
            phone.keystore.failNext(Call.GENERATE, code)
            expect(outcome) { phone.keys().check(ALIAS) }
            assertTrue(canary !in phone.keystore.aliases())
            phone.keys().check(ALIAS)
            assertEquals(true, phone.keystore.isInStrongBox(canary))
        }
    }

    @Test
    fun `a canary that fails says that the platform is unwell, and the one made in its place decides the next check`() {
        phone.keys().create(ALIAS, CHALLENGE)
        for (fault in listOf(phone.keystore::corrupt, phone.keystore::invalidate)) {
            fault(AndroidKeyStore.canary(ALIAS))
            expect(Code.FAILED) { phone.keys().check(ALIAS) }
            phone.keys().check(ALIAS)
        }
    }

    @Test
    fun `a canary that cannot be used or made now says that the platform is unwell`() {
        phone.keys().create(ALIAS, CHALLENGE)
        val canary = AndroidKeyStore.canary(ALIAS)
        for (code in temporary) {
            phone.keystore.failAlways(Call.SIGN_START, code)
            expect(Code.UNAVAILABLE) { phone.keys().check(ALIAS) }
            phone.keystore.works()
        }
        phone.keystore.failAlways(Call.SIGN_START, KeystoreDaemon.INVALID_KEY_BLOB)
        expect(Code.FAILED) { phone.keys().check(ALIAS) }
        phone.keystore.works()
        phone.keystore.lose(canary)
        phone.keystore.failAlways(Call.GENERATE, KeystoreDaemon.SYSTEM_ERROR)
        expect(Code.UNAVAILABLE) { phone.keys().check(ALIAS) }
    }

    @Test
    fun `a key whose canary cannot be made is a key`() {
        phone.keystore.failNext(Call.GENERATE, 0, KeystoreDaemon.SYSTEM_ERROR)
        phone.keys().create(ALIAS, CHALLENGE)
        assertEquals(listOf(ALIAS), phone.keystore.aliases())
        phone.keys().check(ALIAS)
    }

    // Remote provisioning

    @Test
    fun `each answer of remote provisioning leads to what the platform documents`() {
        for ((code, attempts) in listOf(
            KeystoreDaemon.OUT_OF_KEYS_TRANSIENT to 3, KeystoreDaemon.OUT_OF_KEYS_PENDING_INTERNET to 3,
            KeystoreDaemon.GET_ATTESTATION_APPLICATION_ID_FAILED to 3, KeystoreDaemon.OUT_OF_KEYS_PERMANENT to 1,
            KeystoreDaemon.OUT_OF_KEYS_REQUIRES_SYSTEM_UPGRADE to 1, KeystoreDaemon.INFO_NOT_AVAILABLE to 3,
        )) {
            val before = phone.keystore.count(Call.GENERATE)
            phone.keystore.failAlways(Call.GENERATE, code)
            val isOfAttestation = code != KeystoreDaemon.INFO_NOT_AVAILABLE
            val keys = phone.keys(AndroidKeyStore.Attestation.ALWAYS, usesStrongBox = false)
            expect(if (code == KeystoreDaemon.OUT_OF_KEYS_PERMANENT) Code.FAILED else Code.UNAVAILABLE) { keys.create(ALIAS, CHALLENGE) }
            assertEquals("$code", attempts, phone.keystore.count(Call.GENERATE) - before)
            // A key without attestation does not need the attestation hardware.
            if (isOfAttestation) assertNotNull(phone.keys(usesStrongBox = false).create(ALIAS, CHALLENGE))
            phone.keystore.works()
        }
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
        expect(Code.FAILED) { phone.keys().load(ALIAS) }
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
