package ai.synheart.auth

import ai.synheart.auth.DeviceKeyStoreException.Code
import ai.synheart.auth.identity.Canaries
import ai.synheart.auth.identity.Identity
import ai.synheart.auth.identity.IdentityRecord
import ai.synheart.auth.identity.KeyAlias
import ai.synheart.auth.identity.KeyReference
import ai.synheart.auth.identity.PlatformAnswer
import ai.synheart.auth.identity.Verdict
import ai.synheart.auth.identity.VerdictTable
import ai.synheart.auth.wire.PublicKey
import ai.synheart.auth.wire.hex
import ai.synheart.auth.wire.sha256
import java.io.Closeable
import java.security.KeyPairGenerator
import java.security.Signature
import java.security.spec.ECGenParameterSpec
import java.util.concurrent.ConcurrentHashMap
import kotlin.random.Random
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.runBlocking
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertTrue
import org.junit.Test

/** Tests each row of [VerdictTable] and, with random answers of a platform, that no identity is given up without proof of a loss. */
class VerdictTest {
    @Test
    fun `VerdictTable gives the documented verdict for each row`() {
        val suspected = { isFirst: Boolean, millis: Long -> Verdict.Suspected(isFirst, millis) }
        for (canaries in Canaries.entries) {
            for (remaining in listOf(null, 2_000L, 1L, 0L, -5L)) {
                assertEquals(Verdict.Intact, VerdictTable.verdict(PlatformAnswer.WORKS, remaining, canaries))
                assertEquals(Verdict.Lost, VerdictTable.verdict(PlatformAnswer.FINAL, remaining, canaries))
                assertEquals(Verdict.Unwell, VerdictTable.verdict(PlatformAnswer.TEMPORARY, remaining, canaries))
            }
            assertEquals(suspected(true, 2_000), VerdictTable.verdict(PlatformAnswer.SUSPICIOUS, null, canaries))
            assertEquals(suspected(false, 1), VerdictTable.verdict(PlatformAnswer.SUSPICIOUS, 1, canaries))
        }
        for (remaining in listOf(0L, -5L)) {
            assertEquals(Verdict.AskCanaries, VerdictTable.verdict(PlatformAnswer.SUSPICIOUS, remaining))
            assertEquals(Verdict.Lost, VerdictTable.verdict(PlatformAnswer.SUSPICIOUS, remaining, Canaries.WORK))
            assertEquals(Verdict.Unwell, VerdictTable.verdict(PlatformAnswer.SUSPICIOUS, remaining, Canaries.FAIL))
        }
    }

    /** A phone in memory whose platform answers as the test says. */
    private class Phone : DeviceKeyStore, RecordStorage, DeviceClock {
        val appId = "com.example.app"
        val alias = KeyAlias.primary(appId)
        val name = sha256(appId.toByteArray()).hex()
        private val pair = KeyPairGenerator.getInstance("EC").apply { initialize(ECGenParameterSpec("secp256r1")) }.generateKeyPair()
        private val records = ConcurrentHashMap<String, ByteArray>()
        private val locks = ConcurrentHashMap.newKeySet<String>()

        /**
         * What the platform throws: [answer] from calls about the key, [canary] from checks of the key store, [storage] from
         * checks of the storage. If a function returns null, the call succeeds.
         */
        var answer: () -> DeviceKeyStoreException? = { null }
        var canary: () -> DeviceKeyStoreException? = { null }
        var storage: () -> StorageException? = { null }

        /** Called when the key signs. */
        var signed: () -> Unit = {}

        override var elapsedMillis = 1_000_000L
        override val wallMillis = 1_790_000_000_000L
        override val attestsKeys = false

        init {
            val key = KeyReference(alias, PublicKey.of(pair.public.encoded).thumbprint)
            val record = IdentityRecord(
                appId, IdentityState.REGISTERED, Identity.ACTIVE, "123e4567-e89b-42d3-a456-426614174000", key, registeredAt = 1_790_000_000,
                authOrigin = "https://auth.example.com",
            )
            records[name] = record.toBytes()
        }

        private fun sleeper() = Sleeper { duration, purpose ->
            if (purpose == SleepPurpose.DEADLINE) awaitCancellation()
            elapsedMillis += duration.inWholeMilliseconds
        }

        /** Another process of the app. */
        fun launch() = SynheartAuth(
            Configuration(
                "https://auth.example.com", this, this, { throw AttestationException(AttestationException.Code.UNAVAILABLE) }, this,
                transport = { throw TransportException("no network") }, sleeper = sleeper(), rotatesAutomatically = false,
            ),
        )

        override fun create(alias: String, challenge: ByteArray?): ByteArray = throw DeviceKeyStoreException(Code.UNAVAILABLE)
        override fun load(alias: String): ByteArray? {
            val error = answer() ?: return pair.public.encoded
            return if (error.code == Code.NOT_FOUND) null else throw error
        }
        override fun sign(alias: String, message: ByteArray): ByteArray {
            answer()?.let { throw it }
            signed()
            return Signature.getInstance("SHA256withECDSA").run {
                initSign(pair.private)
                update(message)
                sign()
            }
        }
        override fun check(alias: String) {
            canary()?.let { throw it }
        }
        override fun delete(alias: String) = Unit

        override fun read(name: String): ByteArray? = records[name]
        override fun write(name: String, bytes: ByteArray) {
            records[name] = bytes
        }
        override fun remove(name: String) {
            records.remove(name)
        }
        override fun check() {
            storage()?.let { throw it }
        }
        override fun setAside(name: String, bytes: ByteArray) = Unit
        override fun tryLock(name: String, scope: String): Closeable? =
            if (locks.add("$name.$scope")) Closeable { locks.remove("$name.$scope") } else null
    }

    private val wrong = listOf(Code.NOT_FOUND, Code.FAILED, Code.UNAVAILABLE)

    private fun Phone.sign(auth: SynheartAuth): Throwable? = runBlocking { runCatching { auth.signRequest(appId, "GET", "/") }.exceptionOrNull() }

    private fun Phone.use(auth: SynheartAuth, random: Random): Throwable? = runBlocking {
        runCatching {
            when (random.nextInt(3)) {
                0 -> auth.signRequest(appId, "GET", "/")
                1 -> auth.isRegistered(appId)
                else -> auth.registerDevice(appId)
            }
        }.exceptionOrNull()
    }

    /** An answer that [proveALoss] looks at. The tests keep a list of the phone's answers since the key last signed. */
    private sealed interface Answer {
        data class Suspicious(val atMillis: Long) : Answer

        data object KeyCanaryWorked : Answer

        data object StorageCanaryWorked : Answer
    }

    /**
     * Whether a suspicious answer came at least 2 s after the first one, and both canaries (a test key and a test value in
     * the storage) worked after it.
     */
    private fun List<Answer>.proveALoss(): Boolean {
        val first = filterIsInstance<Answer.Suspicious>().firstOrNull() ?: return false
        val second = indexOfFirst { it is Answer.Suspicious && it.atMillis >= first.atMillis + 2_000 }
        return second >= 0 && drop(second).containsAll(listOf(Answer.KeyCanaryWorked, Answer.StorageCanaryWorked))
    }

    @Test
    fun `whatever wrong answers a platform gives, an identity that the hardware has is not given up early`() {
        var givenUp = 0
        repeat(1_500) { seed ->
            val random = Random(seed)
            val phone = Phone()
            var auth = phone.launch()
            val answers = mutableListOf<Answer>()
            phone.answer = {
                val code = if (random.nextInt(4) > 0) wrong.random(random) else null
                if (code == Code.NOT_FOUND || code == Code.FAILED) answers.add(Answer.Suspicious(phone.elapsedMillis))
                code?.let { DeviceKeyStoreException(it) }
            }
            phone.canary = {
                val code = if (random.nextBoolean()) wrong.random(random) else null
                if (code == null) answers.add(Answer.KeyCanaryWorked)
                code?.let { DeviceKeyStoreException(it) }
            }
            phone.storage = {
                val fails = random.nextInt(4) == 0
                if (!fails) answers.add(Answer.StorageCanaryWorked)
                if (fails) StorageException(StorageException.Code.UNAVAILABLE) else null
            }
            phone.signed = { answers.clear() }
            for (step in 1..20) {
                when (random.nextInt(5)) {
                    0 -> auth = phone.launch()
                    1 -> phone.elapsedMillis += random.nextLong(3_000)
                    else -> phone.use(auth, random)
                }
                if (runBlocking { phone.launch().state(phone.appId) } == IdentityState.REGISTERED) continue
                givenUp++
                assertTrue("seed $seed: $answers", answers.proveALoss())
                break
            }
        }
        // Enough identities were given up, so the property was tested.
        assertTrue("$givenUp", givenUp > 50)
    }

    @Test
    fun `a lost key is noticed by the second launch at the latest, whatever the first one did`() {
        repeat(300) { seed ->
            val random = Random(seed)
            val phone = Phone()
            val code = listOf(Code.NOT_FOUND, Code.FAILED, Code.INVALIDATED).random(random)
            phone.answer = { DeviceKeyStoreException(code) }
            phone.use(phone.launch(), random)
            phone.elapsedMillis += random.nextLong(100_000)
            val second = phone.launch()
            runBlocking { second.state(phone.appId) }
            phone.elapsedMillis += 2_000
            val error = phone.sign(second) as SynheartAuthException
            assertEquals("seed $seed: $error", Recovery.REGISTER, error.recovery)
            // If the key store answered INVALIDATED during a registration, the SDK has already gone back to UNREGISTERED.
            val state = runBlocking { second.state(phone.appId) }
            assertTrue("seed $seed", state == IdentityState.KEY_INVALID || code == Code.INVALIDATED && state == IdentityState.UNREGISTERED)
        }
    }

    @Test
    fun `a suspicion of an earlier process counts 2 s after the first use of the identity, and a signature clears it`() {
        val phone = Phone()
        phone.answer = { DeviceKeyStoreException(Code.FAILED) }
        assertTrue(phone.sign(phone.launch()) is SynheartAuthException.KeystoreError)
        phone.elapsedMillis += 1_000_000
        val second = phone.launch()
        assertEquals(IdentityState.REGISTERED, runBlocking { second.state(phone.appId) })
        phone.elapsedMillis += 500
        val early = phone.sign(second) as SynheartAuthException.KeystoreError
        assertEquals(1_500L, early.retryAfter?.inWholeMilliseconds)
        phone.answer = { null }
        runBlocking { second.signRequest(phone.appId, "GET", "/") }
        phone.elapsedMillis += 10_000
        phone.answer = { DeviceKeyStoreException(Code.FAILED) }
        val again = phone.sign(second) as SynheartAuthException.KeystoreError
        assertEquals(2_000L, again.retryAfter?.inWholeMilliseconds)
    }

    @Test
    fun `a suspicion of another running process can be confirmed 2 s after this process saw it`() {
        val phone = Phone()
        val (first, second) = phone.launch() to phone.launch()
        assertEquals(IdentityState.REGISTERED, runBlocking { second.state(phone.appId) })
        phone.elapsedMillis += 60_000
        phone.answer = { DeviceKeyStoreException(Code.FAILED) }
        assertTrue(phone.sign(first) is SynheartAuthException.KeystoreError)
        phone.elapsedMillis += 5
        val early = phone.sign(second) as SynheartAuthException.KeystoreError
        assertEquals(2_000L, early.retryAfter?.inWholeMilliseconds)
        phone.elapsedMillis += 1_999
        assertTrue(phone.sign(second) is SynheartAuthException.KeystoreError)
        phone.elapsedMillis += 1
        assertTrue(phone.sign(second) is SynheartAuthException.KeyInvalidated)
    }

    @Test
    fun `a suspicion that another running process has just noted is no second answer for one that only now uses the identity`() {
        val phone = Phone()
        val (first, second) = phone.launch() to phone.launch()
        phone.elapsedMillis += 60_000
        phone.answer = { DeviceKeyStoreException(Code.FAILED) }
        assertTrue(phone.sign(first) is SynheartAuthException.KeystoreError)
        phone.elapsedMillis += 5
        val early = phone.sign(second) as SynheartAuthException.KeystoreError
        assertEquals(2_000L, early.retryAfter?.inWholeMilliseconds)
        phone.elapsedMillis += 2_000
        assertTrue(phone.sign(second) is SynheartAuthException.KeyInvalidated)
    }

    @Test
    fun `damage that another running process noted can be confirmed 2 s after this process saw it`() {
        val phone = Phone()
        val (first, second) = phone.launch() to phone.launch()
        assertEquals(IdentityState.REGISTERED, runBlocking { second.state(phone.appId) })
        phone.elapsedMillis += 60_000
        phone.write(phone.name, "no record".toByteArray())
        assertTrue(phone.sign(first) is SynheartAuthException.StorageError)
        phone.elapsedMillis += 5
        val early = phone.sign(second) as SynheartAuthException.StorageError
        assertEquals(2_000L, early.retryAfter?.inWholeMilliseconds)
        phone.elapsedMillis += 2_000
        assertTrue(phone.sign(second) is SynheartAuthException.KeyInvalidated)
    }

    @Test
    fun `an answer about a key that another process has just replaced says nothing about the new one`() {
        for (code in listOf(Code.INVALIDATED, Code.FAILED)) {
            val phone = Phone()
            val auth = phone.launch()
            val other = IdentityRecord.parse(phone.read(phone.name)!!, phone.appId).copy(key = KeyReference(phone.alias, "another"))
            phone.answer = {
                phone.answer = { null }
                phone.write(phone.name, other.toBytes())
                DeviceKeyStoreException(code)
            }
            assertEquals("$code", null, phone.sign(auth))
            assertEquals("$code", other, IdentityRecord.parse(phone.read(phone.name)!!, phone.appId))
        }
    }

    @Test
    fun `nothing is lost while a canary fails, and the key is once they work`() {
        val phone = Phone()
        phone.answer = { DeviceKeyStoreException(Code.FAILED) }
        val auth = phone.launch()
        phone.sign(auth)
        phone.elapsedMillis += 2_000
        phone.canary = { DeviceKeyStoreException(Code.FAILED) }
        repeat(3) { assertEquals(Recovery.RETRY, (phone.sign(auth) as SynheartAuthException.KeystoreError).recovery) }
        phone.canary = { null }
        phone.storage = { StorageException(StorageException.Code.UNAVAILABLE) }
        repeat(3) { assertTrue(phone.sign(auth) is SynheartAuthException.KeystoreError) }
        phone.storage = { null }
        assertTrue(phone.sign(auth) is SynheartAuthException.KeyInvalidated)
    }

    @Test
    fun `a key that works again after its canary did is not lost`() {
        val phone = Phone()
        phone.answer = { DeviceKeyStoreException(Code.FAILED) }
        val auth = phone.launch()
        phone.sign(auth)
        phone.elapsedMillis += 2_000
        // The Keystore's daemon restarts between the suspicious answer about the key and the check of the canary (a test key).
        phone.canary = {
            phone.answer = { null }
            null
        }
        assertEquals(null, phone.sign(auth))
        assertFalse(runBlocking { auth.state(phone.appId) } == IdentityState.KEY_INVALID)
    }
}
