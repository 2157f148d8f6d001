package ai.synheart.auth

import ai.synheart.auth.android.AndroidConfiguration
import ai.synheart.auth.android.AndroidProof
import ai.synheart.standins.StandInDevice
import java.io.File
import ai.synheart.auth.wire.hex
import ai.synheart.auth.wire.sha256
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeoutOrNull
import org.junit.Assert.assertEquals
import org.junit.Assert.assertNotEquals
import org.junit.Assert.assertTrue
import org.junit.Test

/** Two clients, or two processes, on one storage. */
class TwoClientsTest {
    @Test
    fun `two clients that register at once are one device`() = World.run {
        coroutineScope {
            val clients = List(4) { phone.client() }
            val ids = clients.map { async { it.registerDevice(appId).deviceId } }.map { it.await() }
            assertEquals(1, ids.toSet().size)
        }
        assertEquals(1, liveDevices().size)
        assertEquals(1, phone.keys(appId).size)
    }

    @Test
    fun `two clients that rotate at once both sign with the new key`() = World.run {
        register()
        val other = phone.client()
        val times = coroutineScope {
            listOf(client, other).map { async { it.rotateKey(appId).effectiveAt } }.map { it.await() }
        }
        assertTrue("$times", times.all { it > 0 })
        for (each in listOf(client, other)) assertEquals(200, each.send(appId, HttpRequest("GET", statusUrl)).status)
        assertEquals(1, phone.keys(appId).size)
    }

    @Test
    fun `a device stays registered while another client replaces its key`() = World.run {
        register()
        for (isRegistered in listOf<suspend (SynheartAuth) -> Boolean>(
            { it.isRegistered(appId) }, { it.registerDevice(appId).status == Registration.Status.ALREADY_REGISTERED },
        )) {
            val outside = Outside()
            // Rotates after the record was read, and before the key store is asked.
            outside.onCall = { number ->
                if (outside.calls[number] == "load") {
                    outside.onCall = {}
                    runBlocking { client.rotateKey(appId) }
                }
            }
            assertTrue(isRegistered(phone.client(outside)))
        }
    }

    @Test
    fun `a client signs with the key that another one has just rotated to`() = World.run {
        register()
        val other = phone.client()
        other.registerDevice(appId)
        repeat(3) {
            client.rotateKey(appId, RotationReason.COMPROMISE)
            assertEquals(200, other.send(appId, HttpRequest("GET", statusUrl)).status)
        }
    }

    @Test
    fun `a reset ends a registration that waits for its next attempt`() = World.run {
        val other = phone.client()
        loseRequest(World.CHALLENGE)
        coroutineScope {
            phone.sleeper.onRetry = {
                phone.sleeper.onRetry = {}
                launch { client.resetDeviceIdentity(appId, ResetReason.USER_REQUESTED) }.join()
            }
            expect<SynheartAuthException.NetworkError>(Recovery.RETRY) { register() }
        }
        other.registerDevice(appId)
        assertEquals(1, liveDevices().size)
    }

    @Test
    fun `a registration waits for every reset that began before it`() = World.run {
        val first = register().deviceId
        val reached = CompletableDeferred<Unit>()
        val gate = CompletableDeferred<Unit>()
        val name = sha256(appId.toByteArray()).hex()
        val lock = phone.configuration().storage.tryLock(name, "operation")!!
        // The first reset finds the lock taken, and is slow to try again.
        phone.sleeper.onTurn = {
            phone.sleeper.onTurn = { delay(2) }
            reached.complete(Unit)
            gate.await()
        }
        coroutineScope {
            val resets = mutableListOf(async { client.resetDeviceIdentity(appId, ResetReason.USER_REQUESTED) })
            reached.await()
            lock.close()
            resets += async { client.resetDeviceIdentity(appId, ResetReason.USER_REQUESTED) }
            // Neither the second reset nor the registration may overtake the first one.
            withTimeoutOrNull(300) { resets[1].await() }
            val registration = async { register() }
            withTimeoutOrNull(300) { registration.await() }
            gate.complete(Unit)
            resets.awaitAll()
            assertNotEquals(first, registration.await().deviceId)
        }
        expectWorking()
        assertEquals(1, liveDevices().size)
    }

    @Test
    fun `two identities on one phone are independent`() = World.run {
        val second = service.newApp(phone.record())
        register()
        client.registerDevice(second)
        client.resetDeviceIdentity(appId, ResetReason.USER_REQUESTED)
        assertEquals(IdentityState.UNREGISTERED, client.state(appId))
        assertEquals(DeviceStatus.Status.REGISTERED, client.status(second).status)
        expect<SynheartAuthException.NotRegistered>(Recovery.REGISTER) { client.signRequest(appId, "GET", "/") }
    }

    @Test
    fun `processes that register at once are one device`() = World.run(AndroidProof.KEY_ATTESTATION) {
        val processes = List(3) {
            ProcessBuilder(
                "${System.getProperty("java.home")}/bin/java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m", "-cp",
                System.getProperty("java.class.path"), "ai.synheart.auth.OtherClient", "${phone.path}", service.publicUrl, appId,
            ).redirectError(ProcessBuilder.Redirect.INHERIT).start()
        }
        val ids = processes.map { process ->
            process.inputStream.bufferedReader().readText().trim().also { assertEquals(0, process.waitFor()) }
        }
        assertEquals("$ids", 1, ids.toSet().size)
        assertEquals(ids[0], register().deviceId)
        assertEquals(1, liveDevices().size)
        expectWorking()
    }
}

/** Another process of the app, which registers, rotates and prints the device id. */
internal object OtherClient {
    @JvmStatic
    fun main(arguments: Array<String>) {
        val (folder, service, appId) = arguments
        val context = StandInDevice.start(File(folder).toPath()).context()
        val client = SynheartAuth(
            AndroidConfiguration(service, proof = AndroidProof.KEY_ATTESTATION, usesStrongBox = false, rotatesAutomatically = false).with(context) {},
        )
        runBlocking {
            client.registerDevice(appId)
            client.rotateKey(appId)
            println(client.status(appId).deviceId)
        }
        System.exit(0)
    }
}
