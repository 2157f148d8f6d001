package ai.synheart.auth.android

import ai.synheart.auth.HttpRequest
import ai.synheart.auth.RunningService
import ai.synheart.auth.SignatureScheme
import ai.synheart.auth.SynheartAuth
import ai.synheart.auth.TestPhone
import ai.synheart.standins.StandInDevice
import java.io.File
import java.lang.ProcessHandle
import java.time.Instant
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.runBlocking
import kotlin.system.measureNanoTime

/**
 * Measures the client on this machine's JVM, with keys of the stand-in Keystore. `scripts/measure` runs it. The first part runs at the
 * speed of this machine. The second part measures how long an app waits if the Keystore is as slow as a phone's.
 */
object Measurement {
    private const val SIGNATURES = 400
    private const val REQUESTS = 160
    private const val CONCURRENT = 8
    private const val ROUNDS = 100
    private const val BINDER = 1
    private const val TEE = 15
    private const val STRONG_BOX = 150

    @JvmStatic
    fun main(arguments: Array<String>) {
        if (arguments.isNotEmpty()) return coldStart(arguments)
        RunningService().use { service ->
            TestPhone(AndroidProof.KEY_ATTESTATION, service).use { phone ->
                val appId = service.newApp(phone.record())
                val android = AndroidConfiguration(service.publicUrl, proof = AndroidProof.KEY_ATTESTATION, rotatesAutomatically = false)
                val client = SynheartAuth.create(phone.device.context(), android)
                runBlocking { client.registerDevice(appId) }
                val starts = List(5) { coldStart(phone.device.folder, service.publicUrl, appId) }.sorted()
                println("first signature after a cold start: ${starts[2]} ms of the JVM's life (median of 5)")
                runBlocking {
                    repeat(SIGNATURES / 4) { client.signRequest(appId, "POST", "/v1/readings", ByteArray(256)) }
                    val signing = measureNanoTime { repeat(SIGNATURES) { client.signRequest(appId, "POST", "/v1/readings", ByteArray(256)) } }
                    println("signatures, one after another: ${rate(SIGNATURES, signing)}/s")
                    for (scheme in SignatureScheme.entries) {
                        val sender = SynheartAuth.create(
                            phone.device.context(),
                            AndroidConfiguration(
                                service.publicUrl, proof = AndroidProof.KEY_ATTESTATION, rotatesAutomatically = false, scheme = scheme,
                            ),
                        )
                        val sending = measureNanoTime {
                            List(CONCURRENT) {
                                async(Dispatchers.Default) { repeat(REQUESTS / CONCURRENT) { sender.send(appId, status(service)) } }
                            }.awaitAll()
                        }
                        println("signed requests to the service (debug build), $CONCURRENT at a time, scheme $scheme: ${rate(REQUESTS, sending)}/s")
                    }
                }
            }
            latency(service)
        }
    }

    /** Measures how long an app waits for each operation. The service is on this machine. */
    private fun latency(service: RunningService) {
        println("\n| Keystore with $BINDER ms of binder a call | calls | p50 | p99 |\n|---|---|---|---|")
        for (usesStrongBox in listOf(false, true)) {
            val hardware = if (usesStrongBox) "StrongBox, $STRONG_BOX ms" else "TEE, $TEE ms"
            TestPhone(AndroidProof.KEY_ATTESTATION, service).use { phone ->
                val keystore = phone.device.keystore
                keystore.slow(BINDER, TEE, STRONG_BOX)
                val android = AndroidConfiguration(
                    service.publicUrl, proof = AndroidProof.KEY_ATTESTATION, rotatesAutomatically = false, usesStrongBox = usesStrongBox,
                )
                // Each app starts with nothing stored, as at a first launch.
                val apps = List(ROUNDS / 10) { service.newApp(phone.record()) }
                fun row(name: String, rounds: Int, body: suspend (Int) -> Unit) {
                    var calls = 0
                    val times = List(rounds) { round ->
                        val before = keystore.count()
                        val time = measureNanoTime { runBlocking { body(round) } } / 1e6
                        calls = keystore.count() - before
                        time
                    }.sorted()
                    fun at(share: Double) = "%.1f ms".format(times[((times.size - 1) * share).toInt()])
                    println("| $hardware: $name | $calls | ${at(0.5)} | ${at(0.99)} |")
                }
                row("first launch: registerDevice", apps.size) { SynheartAuth.create(phone.device.context(), android).registerDevice(apps[it]) }
                row("first signRequest of a process", ROUNDS) {
                    SynheartAuth.create(phone.device.context(), android).signRequest(apps[0], "GET", "/")
                }
                val client = SynheartAuth.create(phone.device.context(), android)
                runBlocking { client.signRequest(apps[0], "GET", "/") }
                row("each later signRequest", ROUNDS) { client.signRequest(apps[0], "GET", "/") }
            }
        }
    }

    private fun status(service: RunningService) = HttpRequest("GET", "${service.publicUrl}/auth/v1/device/status")

    private fun rate(count: Int, nanoseconds: Long): Long = count * 1_000_000_000L / nanoseconds

    private fun coldStart(phone: java.nio.file.Path, url: String, appId: String): Long = ProcessBuilder(
        "${System.getProperty("java.home")}/bin/java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp",
        System.getProperty("java.class.path"), javaClass.name, "$phone", url, appId,
    ).redirectError(ProcessBuilder.Redirect.INHERIT).start().inputStream.bufferedReader().use { it.readLine().toLong() }

    /** A process that signs once, and prints the milliseconds since its start. */
    private fun coldStart(arguments: Array<String>) {
        val (phone, url, appId) = arguments
        val context = StandInDevice.start(File(phone).toPath()).context()
        val client = SynheartAuth.create(context, AndroidConfiguration(url, proof = AndroidProof.KEY_ATTESTATION))
        runBlocking { client.signRequest(appId, "GET", "/") }
        println(Instant.now().toEpochMilli() - ProcessHandle.current().info().startInstant().get().toEpochMilli())
        Runtime.getRuntime().halt(0)
    }
}
