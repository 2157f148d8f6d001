package ai.synheart.auth

import ai.synheart.auth.android.AndroidConfiguration
import ai.synheart.auth.android.PhoneRule
import ai.synheart.auth.android.configure
import ai.synheart.standins.KeystoreDaemon.Call
import java.util.concurrent.CountDownLatch
import java.util.concurrent.atomic.AtomicInteger
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Rule
import org.junit.Test

/** The client does not block the app, and is configured once. */
class WaitingTest {
    @get:Rule
    val phone = PhoneRule()

    @Test
    fun `calls work while the app's own code holds every thread of Dispatchers_IO`() {
        val end = CountDownLatch(1)
        val held = AtomicInteger()
        runBlocking {
            val blockers = List(64) {
                launch(Dispatchers.IO) {
                    held.incrementAndGet()
                    end.await()
                }
            }
            while (held.get() < 64) Thread.onSpinWait()
            OnceRuns.device { server, auth ->
                val answer = runBlocking { auth.send(MemoryPhone.APP, HttpRequest("POST", "${server.url}/", body = ByteArray(1))) }
                assertEquals(200, answer.status)
            }
            end.countDown()
            blockers.forEach { it.join() }
        }
    }

    @Test(timeout = 120_000)
    fun `calls work while the app's own code blocks in them on every thread of Dispatchers_Default`() = OnceRuns.device { server, auth ->
        val request = HttpRequest("POST", "${server.url}/", body = ByteArray(1))
        val answers = runBlocking {
            List(64) { async(Dispatchers.Default) { runBlocking { auth.send(MemoryPhone.APP, request).status } } }.awaitAll()
        }
        assertEquals(setOf(200), answers.toSet())
    }

    @Test
    fun `1000 calls that hang cost a bounded number of threads, and end by their deadlines`() = World.run {
        register()
        val answer = CountDownLatch(1)
        phone.device.keystore.hold(Call.SIGN_START, answer)
        val before = Thread.activeCount()
        val started = phone.device.keystore.count(Call.SIGN_START)
        phone.sleeper.onDeadline = { while (phone.device.keystore.count(Call.SIGN_START) == started) kotlinx.coroutines.delay(2) }
        val results = coroutineScope {
            List(1_000) { async(Dispatchers.Default) { runCatching { client.signRequest(appId, "GET", "/") } } }.awaitAll()
        }
        assertTrue(results.all { (it.exceptionOrNull() as? SynheartAuthException)?.recovery == Recovery.RETRY })
        val most = 40 + Runtime.getRuntime().availableProcessors()
        assertTrue("${Thread.activeCount() - before} threads", Thread.activeCount() - before < most)
        phone.device.keystore.works()
        answer.countDown()
    }

    @Test
    fun `1000 calls that wait for a storage that hangs end by their deadlines on one thread`() = World.run {
        register()
        val answer = CountDownLatch(1)
        val outside = Outside()
        outside.onCall = { if (outside.calls[it] == "read") answer.await() }
        val other = SynheartAuth(phone.configuration(outside))
        phone.sleeper.onDeadline = { while (outside.isQuiet) kotlinx.coroutines.delay(2) }
        val results = coroutineScope {
            List(1_000) { async(Dispatchers.Default) { runCatching { other.isRegistered(appId) } } }.awaitAll()
        }
        assertTrue("${results.first()}", results.all { (it.exceptionOrNull() as? SynheartAuthException.StorageError)?.recovery == Recovery.RETRY })
        assertEquals(1, outside.calls.size)
        answer.countDown()
        while (!outside.isQuiet) kotlinx.coroutines.delay(2)
        phone.sleeper.onDeadline = { awaitCancellation() }
        assertTrue(other.isRegistered(appId))
    }

    @Test
    fun `a first launch with nothing stored does not sleep, and signing reads nothing but the version and the key`() = World.run {
        assertFalse(client.isRegistered(appId))
        assertEquals(IdentityState.UNREGISTERED, client.state(appId))
        assertEquals(0, phone.sleeper.pauses.size)
        register()
        assertEquals(0, phone.sleeper.pauses.size)
        val outside = Outside()
        val other = SynheartAuth(phone.configuration(outside))
        other.signRequest(appId, "GET", "/")
        val before = outside.calls.size
        other.signRequest(appId, "GET", "/")
        assertEquals(listOf("sign"), outside.calls.drop(before))
    }

    // Configuring

    private fun configuration(proof: ai.synheart.auth.android.AndroidProof = ai.synheart.auth.android.AndroidProof.EITHER) =
        AndroidConfiguration("https://auth.example.com", proof = proof, origins = setOf("https://api.example.com"))

    @Test
    fun `configuring twice with the same values keeps the state, and with other values is an error that says so`() {
        val auth = SynheartAuth()
        auth.configure(phone.device.context(), configuration())
        val changes = auth.stateChanges
        auth.configure(phone.device.context(), configuration())
        assertTrue(changes === auth.stateChanges)
        val others = listOf(
            configuration(ai.synheart.auth.android.AndroidProof.BOTH), AndroidConfiguration("https://other.example.com"),
            AndroidConfiguration("https://auth.example.com", scheme = SignatureScheme.TWO),
        )
        for (other in others) {
            val error = assertThrows(SynheartAuthException.NotConfigured::class.java) { auth.configure(phone.device.context(), other) }
            assertTrue(error.message!!, "other values" in error.message!!)
            assertEquals(Recovery.NONE, error.recovery)
        }
        assertThrows(SynheartAuthException.NotConfigured::class.java) {
            auth.configure(phone.device.context().createDeviceProtectedStorageContext(), configuration())
        }
        auth.configure(phone.device.context(), configuration())
    }
}
