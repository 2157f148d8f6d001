package ai.synheart.auth.android

import ai.synheart.auth.AttestationEvidence
import ai.synheart.auth.AttestationProvider
import ai.synheart.auth.DeviceKeyStore
import ai.synheart.auth.DeviceKeyStoreException
import ai.synheart.auth.DeviceKeyStoreException.Code
import ai.synheart.standins.KeystoreDaemon
import ai.synheart.standins.KeystoreDaemon.Call
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeoutException
import java.util.concurrent.atomic.AtomicInteger
import kotlin.concurrent.thread
import kotlinx.coroutines.awaitCancellation
import org.junit.After
import org.junit.Assert.assertArrayEquals
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertNotEquals
import org.junit.Assert.assertNull
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Rule
import org.junit.Test

class RuntimeHostRegistryTest {
    @get:Rule
    val phone = PhoneRule()

    private var waited = 0L
    private val secrets get() = RuntimeSecrets(phone.device.context()) { waited += it }

    @After
    fun forget() = RuntimeHostRegistry.install(null)

    private fun install(
        keys: DeviceKeyStore = phone.keys(), limitMillis: Long = 30_000, storage: SecretStorage = secrets,
        attestation: AttestationProvider = AttestationProvider { AttestationEvidence("token") },
    ) = RuntimeHostRegistry.install(RuntimeParts(keys, attestation, storage, { waited += it }, limitMillis) { secrets.directory() })

    private fun text(bytes: ByteArray?): String? = bytes?.let { String(it) }

    private fun store(value: String) = RuntimeFunctions.secureStore("s".toByteArray(), "k".toByteArray(), value.toByteArray())

    private fun load() = text(RuntimeFunctions.secureLoad("s".toByteArray(), "k".toByteArray()))

    private fun delete() = RuntimeFunctions.secureDelete("s".toByteArray(), "k".toByteArray())

    private val device = "d".toByteArray()

    // Keys

    @Test
    fun `the runtime's keys are separate from an identity's keys`() {
        install()
        phone.keys().create(PhoneRule.ALIAS, null)
        RuntimeFunctions.generateKey("com.example.app".toByteArray())
        assertEquals(listOf(PhoneRule.ALIAS, "synheart_device_com.example.app"), phone.keystore.aliases().filter { "canary" !in it })
        assertEquals(0, RuntimeFunctions.deleteKey("com.example.app".toByteArray()))
        assertTrue(PhoneRule.ALIAS in phone.keystore.aliases())
    }

    @Test
    fun `without a context no key is reported as lost`() {
        assertNull(RuntimeFunctions.generateKey(device))
        assertEquals(1, RuntimeFunctions.keyExists(device))
        assertTrue(text(RuntimeFunctions.getAttestation(device, ByteArray(32)))!!.startsWith("""{"format":"none","blob":"","reason":"""))
        assertEquals(1, store("v"))
    }

    @Test
    fun `a key that cannot be judged now is neither absent nor replaced`() {
        val answers = object : DeviceKeyStore by phone.keys() {
            override fun load(alias: String): ByteArray? = throw DeviceKeyStoreException(Code.UNAVAILABLE)
            override fun create(alias: String, challenge: ByteArray?): ByteArray = throw AssertionError("a key was made")
        }
        install(answers)
        assertEquals(1, RuntimeFunctions.keyExists(device))
        assertNull(RuntimeFunctions.generateKey(device))
    }

    private fun keysThatAnswer(vararg answers: Any?): DeviceKeyStore {
        val real = phone.keys()
        val queue = ArrayDeque(answers.toList())
        return object : DeviceKeyStore by real {
            override fun load(alias: String): ByteArray? {
                if (queue.isEmpty()) return real.load(alias)
                val answer = queue.removeFirst()
                if (answer is Code) throw DeviceKeyStoreException(answer)
                return null
            }
        }
    }

    @Test
    fun `one answer that a key is missing changes nothing`() {
        for (answer in listOf(null, Code.NOT_FOUND, Code.FAILED)) {
            install()
            val key = text(RuntimeFunctions.generateKey(device))
            install(keys = keysThatAnswer(answer))
            waited = 0
            assertEquals(key, text(RuntimeFunctions.generateKey(device)))
            assertEquals(2_000L, waited)
            install(keys = keysThatAnswer(answer))
            assertEquals(1, RuntimeFunctions.keyExists(device))
        }
    }

    @Test
    fun `two answers that are 2 s apart are believed, and a final one at once`() {
        install()
        val key = text(RuntimeFunctions.generateKey(device))
        install(keys = keysThatAnswer(Code.FAILED, null, null))
        assertEquals(0, RuntimeFunctions.keyExists(device))
        install(keys = keysThatAnswer(Code.INVALIDATED))
        waited = 0
        assertEquals(0, RuntimeFunctions.keyExists(device))
        assertEquals(0L, waited)
        install(keys = keysThatAnswer(Code.INVALIDATED, Code.INVALIDATED))
        assertNotEquals(key, text(RuntimeFunctions.generateKey(device)))
    }

    @Test
    fun `a key that is found again after its canary worked is not lost`() {
        install()
        val key = text(RuntimeFunctions.generateKey(device))
        // The Keystore's daemon restarts between the suspicious answer about the key and the check of the canary (a test key).
        install(keys = keysThatAnswer(Code.FAILED, null))
        assertEquals(key, text(RuntimeFunctions.generateKey(device)))
    }

    @Test
    fun `a key that is missing while the canary fails is not lost`() {
        install()
        val key = text(RuntimeFunctions.generateKey(device))
        val unwell = object : DeviceKeyStore by phone.keys() {
            override fun load(alias: String): ByteArray? = null
            override fun check(alias: String): Unit = throw DeviceKeyStoreException(Code.FAILED)
        }
        install(keys = unwell)
        assertEquals(1, RuntimeFunctions.keyExists(device))
        assertNull(RuntimeFunctions.generateKey(device))
        install()
        assertEquals(key, text(RuntimeFunctions.generateKey(device)))
    }

    @Test
    fun `if key and canary are gone, a new canary proves the loss of the key`() {
        install()
        RuntimeFunctions.generateKey(device)
        phone.keystore.deleteEverything()
        assertEquals(0, RuntimeFunctions.keyExists(device))
    }

    @Test
    fun `an absence is believed once, and a key that was deleted is absent`() {
        install()
        assertEquals(0, RuntimeFunctions.keyExists(device))
        assertEquals(2_000L, waited)
        assertNotEquals(null, RuntimeFunctions.generateKey(device))
        assertEquals(0, RuntimeFunctions.deleteKey(device))
        assertEquals(0, RuntimeFunctions.keyExists(device))
        assertEquals(2_000L, waited)
    }

    @Test
    fun `an absence is forgotten once the key is there, which another process made`() {
        var isHidden = false
        install(object : DeviceKeyStore by phone.keys() {
            override fun load(alias: String): ByteArray? = if (isHidden) null.also { isHidden = false } else phone.keys().load(alias)
        })
        assertEquals(0, RuntimeFunctions.deleteKey(device))
        phone.keys().create("synheart_device_d", null)
        assertEquals(1, RuntimeFunctions.keyExists(device))
        isHidden = true
        assertEquals(1, RuntimeFunctions.keyExists(device))
        assertEquals(2_000L, waited)
    }

    @Test
    fun `a Keystore that hangs costs four threads and keeps nothing else waiting`() {
        val latch = CountDownLatch(1)
        install(limitMillis = 50)
        phone.keystore.hold(Call.GET, latch)
        val before = Thread.getAllStackTraces().keys.count { it.name == "synheart-keys" }
        repeat(20) { assertEquals(1, RuntimeFunctions.keyExists(device)) }
        assertTrue(Thread.getAllStackTraces().keys.count { it.name == "synheart-keys" } - before <= 4)
        install(limitMillis = 30_000, storage = MemorySecrets())
        assertEquals(0, store("v"))
        latch.countDown()
        phone.keystore.hold(Call.GET, null)
        assertEquals(0, RuntimeFunctions.keyExists(device))
    }

    @Test
    fun `calls work again once those that hung have returned`() {
        val calls = BoundedCalls("test", limitMillis = 20)
        val latch = CountDownLatch(1)
        val returned = CountDownLatch(4)
        val begun = AtomicInteger()
        // On a busy machine, the limit may pass before a call has begun. Such a call never begins, and holds no thread.
        while (begun.get() < 4) {
            assertThrows(TimeoutException::class.java) {
                calls.run {
                    begun.incrementAndGet()
                    latch.await()
                    returned.countDown()
                }
            }
        }
        val start = System.nanoTime()
        repeat(1_000) { assertThrows(TimeoutException::class.java) { calls.run { } } }
        assertTrue(System.nanoTime() - start < 5_000_000_000)
        latch.countDown()
        returned.await()
        while (true) try { assertEquals(7, calls.run { 7 }); break } catch (_: TimeoutException) { Thread.yield() }
    }

    // Attestation

    @Test
    fun `a provider that never answers ends in an attestation of format none`() {
        install()
        RuntimeFunctions.generateKey(device)
        // The limit is 2 s because it also applies to calls to the Keystore. On a busy machine they take tenths of a second.
        install(limitMillis = 2_000, attestation = { awaitCancellation() })
        assertEquals("""{"format":"none","blob":"","reason":"UNAVAILABLE"}""", text(RuntimeFunctions.getAttestation(device, ByteArray(32))))
    }

    @Test
    fun `the nonce is the hash as base64url without padding`() {
        var nonce: String? = null
        install(attestation = { subject -> nonce = subject.nonce; AttestationEvidence("a.b") })
        RuntimeFunctions.generateKey(device)
        assertEquals("""{"format":"play-integrity","blob":"a.b"}""", text(RuntimeFunctions.getAttestation(device, ByteArray(32) { -1 })))
        assertEquals("_".repeat(42) + "8", nonce)
    }

    // Secrets

    @Test
    fun `a secret outlives the process, and no file holds it`() {
        install()
        assertEquals(0, store("very secret"))
        phone.restart()
        install()
        assertEquals("very secret", load())
        val files = phone.path.toFile().walk().filter { it.isFile }.toList()
        assertTrue(files.any { it.extension == "secret" })
        assertFalse(files.any { "very secret" in it.readText(Charsets.ISO_8859_1) })
    }

    @Test
    fun `a secret that cannot be read gets two seconds`() {
        install()
        store("v")
        phone.keystore.failNext(Call.GET, KeystoreDaemon.SYSTEM_ERROR, KeystoreDaemon.SYSTEM_ERROR)
        waited = 0
        assertEquals("v", load())
        assertEquals(300L, waited)
        phone.keystore.failAlways(Call.GET, KeystoreDaemon.SYSTEM_ERROR)
        waited = 0
        assertNull(load())
        assertEquals(1_900L, waited)
        phone.keystore.works()
        assertEquals("v", load())
    }

    @Test
    fun `a secret that is absent is absent at once`() {
        install()
        assertNull(load())
        assertEquals(0L, waited)
    }

    @Test
    fun `a Keystore that says for a while that the key is absent costs no secret`() {
        install()
        store("before")
        // The Keystore does not find the secrets' key until `secureStore` gives up on it. Then `secureStore` makes another key,
        // and keeps the old one.
        phone.keystore.failNext(Call.GET, *IntArray(6) { KeystoreDaemon.KEY_NOT_FOUND })
        assertEquals(0, RuntimeFunctions.secureStore("s".toByteArray(), "other".toByteArray(), "v".toByteArray()))
        assertEquals(2, phone.keystore.aliases().count { "runtime_secrets" in it })
        assertEquals("before", load())
        assertEquals("v", text(RuntimeFunctions.secureLoad("s".toByteArray(), "other".toByteArray())))
    }

    @Test
    fun `after the Keystore has lost its keys secrets are kept again`() {
        install()
        store("before")
        phone.keystore.deleteEverything()
        assertNull(load())
        assertEquals(0, store("after"))
        assertEquals("after", load())
        phone.restart()
        install()
        assertEquals("after", load())
        assertEquals(0, delete())
        assertNull(load())
    }

    @Test
    fun `a Keystore that is busy gets no new key`() {
        install()
        store("before")
        val keys = phone.keystore.aliases()
        phone.keystore.failEverything(KeystoreDaemon.SECURE_HW_BUSY)
        assertEquals(1, store("after"))
        phone.keystore.works()
        assertEquals(keys, phone.keystore.aliases())
        assertEquals("before", load())
    }

    @Test
    fun `a secret cannot take another's place, and a cut file is no secret`() {
        install()
        RuntimeFunctions.secureStore("s".toByteArray(), "a".toByteArray(), "of a".toByteArray())
        RuntimeFunctions.secureStore("s".toByteArray(), "b".toByteArray(), "of b".toByteArray())
        val (first, second) = phone.path.toFile().walk().filter { it.extension == "secret" }.toList()
        assertNotEquals(first, second)
        first.copyTo(second, overwrite = true)
        val loaded = listOf("a", "b").map { text(RuntimeFunctions.secureLoad("s".toByteArray(), it.toByteArray())) }
        assertEquals(1, loaded.count { it == null })
        for (length in listOf(0, 1, 2, 29)) {
            first.writeBytes(first.readBytes().copyOf(length))
            assertTrue(listOf("a", "b").all { RuntimeFunctions.secureLoad("s".toByteArray(), it.toByteArray()) == null })
        }
        assertEquals(0, RuntimeFunctions.secureStore("s".toByteArray(), "a".toByteArray(), "new".toByteArray()))
        assertEquals("new", text(RuntimeFunctions.secureLoad("s".toByteArray(), "a".toByteArray())))
    }

    @Test
    fun `two threads that store first share one key`() {
        install()
        val threads = List(4) { i -> thread { RuntimeFunctions.secureStore("s".toByteArray(), "$i".toByteArray(), "v$i".toByteArray()) } }
        for (each in threads) each.join()
        for (i in 0 until 4) assertEquals("v$i", text(RuntimeFunctions.secureLoad("s".toByteArray(), "$i".toByteArray())))
    }

    // An earlier release's secrets

    private class Earlier : EarlierSecrets {
        val values = hashMapOf("s/k" to "old")
        var fails = false
        var onLoad = {}

        override fun load(service: String, key: String): String? {
            if (fails) throw SecurityException()
            return values["$service/$key"].also { onLoad() }
        }

        override fun delete(service: String, key: String) {
            if (fails) throw SecurityException()
            values.remove("$service/$key")
        }
    }

    private class MemorySecrets : SecretStorage {
        private val values = HashMap<String, ByteArray>()

        override fun read(service: String, key: String): ByteArray? = values["$service/$key"]

        override fun write(service: String, key: String, value: ByteArray) {
            values["$service/$key"] = value
        }

        override fun remove(service: String, key: String) {
            values.remove("$service/$key")
        }
    }

    @Test
    fun `a secret of an earlier release is found, and moves`() {
        val earlier = Earlier()
        install(storage = AdoptingSecrets(secrets, earlier))
        assertEquals("old", load())
        assertTrue(earlier.values.isEmpty())
        assertEquals("old", load())
    }

    @Test
    fun `a secret of an earlier release neither hides a new one nor comes back`() {
        val earlier = Earlier()
        install(storage = AdoptingSecrets(secrets, earlier))
        assertEquals(0, store("new"))
        assertEquals("new", load())
        earlier.values["s/k"] = "old"
        assertEquals(0, delete())
        assertNull(load())
    }

    @Test
    fun `a secret of an earlier release does not replace one that is stored while it moves`() {
        val earlier = Earlier()
        val adopting = AdoptingSecrets(secrets, earlier)
        var writer: Thread? = null
        earlier.onLoad = {
            writer = thread { adopting.write("s", "k", "new".toByteArray()) }.also {
                while (it.isAlive && it.state != Thread.State.TIMED_WAITING) Thread.onSpinWait()
            }
        }
        adopting.read("s", "k")
        writer!!.join()
        assertEquals("new", adopting.read("s", "k")?.let(::String))
    }

    @Test
    fun `an earlier storage that fails is unavailable, not empty`() {
        val earlier = Earlier()
        install(storage = AdoptingSecrets(secrets, earlier))
        earlier.fails = true
        assertNull(load())
        assertEquals(1_900L, waited)
        assertEquals(1, delete())
        earlier.fails = false
        assertEquals("old", load())
    }

    @Test
    fun `texts that are not UTF-8 are refused`() {
        install()
        val malformed = byteArrayOf(0xED.toByte(), 0xA0.toByte(), 0xBD.toByte())
        assertNull(RuntimeFunctions.generateKey(malformed))
        assertEquals(1, RuntimeFunctions.secureStore("s".toByteArray(), "k".toByteArray(), malformed))
        assertArrayEquals(null, RuntimeFunctions.secureLoad(malformed, "k".toByteArray()))
    }
}
