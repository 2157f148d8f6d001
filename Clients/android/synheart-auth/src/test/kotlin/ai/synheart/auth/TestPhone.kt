package ai.synheart.auth

import ai.synheart.auth.android.AndroidConfiguration
import ai.synheart.auth.android.AndroidProof
import ai.synheart.standins.StandInDevice
import java.io.Closeable
import java.nio.file.Files
import java.nio.file.Path
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.atomic.AtomicInteger
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.delay
import kotlinx.coroutines.runInterruptible
import kotlinx.coroutines.withContext

/** The process died here. Nothing in the client may catch it. */
internal class Death : Error("the process dies here")

/** The external calls of a client: counts them, and lets the process die before one of them. */
internal class Outside(val dyingAt: Int = -1) {
    val calls = CopyOnWriteArrayList<String>()

    /** Called at each call, with its number. */
    @Volatile
    var onCall: (Int) -> Unit = {}

    /** Whether the process died. */
    @Volatile
    var isDead = false
        private set

    private val underWay = AtomicInteger()

    /** Whether no call is running, not even one whose caller no longer waits. */
    val isQuiet: Boolean get() = underWay.get() == 0

    fun <Value> at(what: String, call: () -> Value): Value {
        underWay.incrementAndGet()
        try {
            pass(what)
            return call()
        } finally {
            underWay.decrementAndGet()
        }
    }

    suspend fun <Value> atSuspended(what: String, call: suspend () -> Value): Value {
        pass(what)
        return call()
    }

    private fun pass(what: String) {
        val number = synchronized(this) {
            if (calls.size == dyingAt) isDead = true
            if (isDead) throw Death()
            calls.add(what)
            calls.size - 1
        }
        onCall(number)
    }
}

/** A phone with one app, on stand-ins for Android, and the clients that run on it. */
internal class TestPhone(val proof: AndroidProof = AndroidProof.PLAY_INTEGRITY, val service: RunningService = RunningService.shared) : Closeable {
    private val folder: Path = Files.createTempDirectory("synheart-auth-phone")
    val path: Path get() = folder
    var device: StandInDevice = StandInDevice.start(folder)
        private set
    val clock = TestClock()
    val sleeper = TestSleeper(clock)
    val log = CopyOnWriteArrayList<String>()

    /** Replaces an exchange with the service, or observes it. */
    @Volatile
    var network: suspend (HttpRequest, suspend (HttpRequest) -> HttpResponse) -> HttpResponse = { request, send -> send(request) }
    /** Whether the disk is full: nothing can be written, and everything can be read and removed. */
    @Volatile
    var isFull = false
    private val transport = JvmTransport()
    val google = device.play.google

    /** The app record for the service. */
    fun record(vararg edits: Pair<String, Any?>): Map<String, Any?> = edited(
        mapOf(
            "name" to "Test", "build_channel" to "staging",
            // Without an authority an app has no scheme 2.
            "signature" to mapOf("authorities" to listOf("https://api.example.com")),
            "android" to mapOf(
                "packages" to listOf(device.packageName), "certificate_digests" to listOf("ERERERERERERERERERERERERERERERERERERERERERE"),
                "proof" to proof.name.lowercase(), "trust_anchors" to listOf(device.keystore.attestor.rootPEM()),
                "play_integrity" to mapOf(
                    "keys" to listOf(mapOf("decryption_key" to google.decryptionKey(), "verification_key" to google.verificationKey())),
                ),
                "key_attestation" to mapOf("status_list" to "none"),
            ),
        ),
        edits.toMap(),
    )

    /** Starts another process of the app. */
    fun restart() {
        device = StandInDevice.start(folder)
        device.play.google = google
    }

    /** The configuration of a client. [outside] records the client's external calls. */
    fun configuration(
        outside: Outside = Outside(), baseUrl: String = service.publicUrl, origins: Set<String> = emptySet(),
        aliases: Set<String> = emptySet(), rotatesAutomatically: Boolean = false, deviceLocalId: String? = null,
        attestation: AttestationProvider? = null, scheme: SignatureScheme = SignatureScheme.ONE,
    ): Configuration {
        val real = AndroidConfiguration(baseUrl, proof = proof, attestation = attestation).with(device.context()) {}
        return Configuration(
            baseUrl, keyStore = Keys(real.keyStore, outside), storage = Storage(real.storage, outside),
            attestation = if (attestation === real.attestation) {
                attestation
            } else {
                AttestationProvider { subject -> outside.atSuspended("attest") { real.attestation.attest(subject) } }
            },
            clock = clock,
            transport = { request -> outside.atSuspended("${request.method} ${path(request)}") { network(request, ::exchange) } },
            sleeper = sleeper, logger = { log.add("${it.level} $it") }, origins = origins, aliases = aliases, deviceLocalId = deviceLocalId,
            rotatesAutomatically = rotatesAutomatically, scheme = scheme,
        )
    }

    private suspend fun exchange(request: HttpRequest) = transport.send(request)

    fun client(outside: Outside = Outside()) = SynheartAuth(configuration(outside))

    /** The names of an app's signing keys on the phone. */
    fun keys(appId: String): List<String> = device.keystore.aliases().filter { appId in it }

    override fun close() {
        folder.toFile().deleteRecursively()
    }

    private class Keys(private val real: DeviceKeyStore, private val outside: Outside) : DeviceKeyStore {
        override val attestsKeys: Boolean get() = real.attestsKeys
        override fun create(alias: String, challenge: ByteArray?) = outside.at("create") { real.create(alias, challenge) }
        override fun load(alias: String) = outside.at("load") { real.load(alias) }
        override fun sign(alias: String, message: ByteArray) = outside.at("sign") { real.sign(alias, message) }
        override fun check(alias: String) = outside.at("check") { real.check(alias) }
        override fun delete(alias: String) = outside.at("delete") { real.delete(alias) }
    }

    private inner class Storage(private val real: RecordStorage, private val outside: Outside) : RecordStorage {
        override fun read(name: String) = outside.at("read") { real.read(name) }
        override fun write(name: String, bytes: ByteArray) = outside.at("write") { real.write(name, checked(bytes)) }
        override fun remove(name: String) = outside.at("remove") { real.remove(name) }
        override fun check() = outside.at("check") { checked(real).check() }
        override fun setAside(name: String, bytes: ByteArray) = outside.at("setAside") { real.setAside(name, checked(bytes)) }
        private fun <Value> checked(value: Value): Value {
            if (isFull) throw StorageException(StorageException.Code.UNAVAILABLE, "no space left on device")
            return value
        }

        override fun version(name: String) = real.version(name)

        override fun tryLock(name: String, scope: String): Closeable? {
            if (outside.isDead) throw Death()
            return real.tryLock(name, scope)
        }
    }

    companion object {
        fun path(request: HttpRequest): String = request.url.substringAfter("://").substringAfter("/", "").let { "/$it" }

        /** A record with members replaced: `"keys.reattest_on_rotation" to true`. */
        fun edited(record: Map<String, Any?>, edits: Map<String, Any?>): Map<String, Any?> = edits.entries.fold(record) { current, (path, value) ->
            val name = path.substringBefore(".")
            if (name == path) {
                current + (name to value)
            } else {
                @Suppress("UNCHECKED_CAST")
                val inner = current[name] as Map<String, Any?>? ?: emptyMap()
                current + (name to edited(inner, mapOf(path.substringAfter(".") to value)))
            }
        }
    }
}

/** A transport over the JVM's `HttpClient`. The JVM's `HttpURLConnection` drops the body of a 401 answer to a streamed request. */
internal class JvmTransport : HttpTransport {
    override suspend fun send(request: HttpRequest): HttpResponse = withContext(Dispatchers.IO) {
        val builder = java.net.http.HttpRequest.newBuilder(java.net.URI(request.url))
            .method(request.method, java.net.http.HttpRequest.BodyPublishers.ofByteArray(request.body))
        for ((name, value) in request.headers) builder.header(name, value)
        val answer = try {
            runInterruptible { client.send(builder.build(), java.net.http.HttpResponse.BodyHandlers.ofByteArray()) }
        } catch (error: java.io.IOException) {
            throw TransportException("no answer", cause = error)
        }
        HttpResponse(answer.statusCode(), answer.headers().map().flatMap { (name, values) -> values.map { name to it } }, answer.body())
    }

    private companion object {
        val client: java.net.http.HttpClient = java.net.http.HttpClient.newBuilder().version(java.net.http.HttpClient.Version.HTTP_1_1).build()
    }
}

/** The system's clock, moved by a test. */
internal class TestClock : DeviceClock {
    @Volatile
    var wallOffset: Long = 0

    @Volatile
    var elapsedOffset: Long = 0
    override val wallMillis: Long get() = System.currentTimeMillis() + wallOffset
    override val elapsedMillis: Long get() = System.nanoTime() / 1_000_000 + elapsedOffset
}

/** Retries happen at once, and their pauses are recorded. Deadlines pass only when a test says so. */
internal class TestSleeper(private val clock: TestClock) : Sleeper {
    val pauses = CopyOnWriteArrayList<Duration>()

    @Volatile
    var onRetry: suspend (Duration) -> Unit = {}

    @Volatile
    var onTurn: suspend () -> Unit = { delay(2.milliseconds) }

    @Volatile
    var onDeadline: suspend (Duration) -> Unit = { awaitCancellation() }

    override suspend fun sleep(duration: Duration, purpose: SleepPurpose) = when (purpose) {
        SleepPurpose.RETRY -> {
            pauses.add(duration)
            clock.elapsedOffset += duration.inWholeMilliseconds
            onRetry(duration)
        }
        SleepPurpose.TURN -> onTurn()
        SleepPurpose.DEADLINE -> onDeadline(duration)
    }
}

/** An error in the protocol's form. */
internal fun refusal(status: Int, code: String, vararg headers: Pair<String, String>, serverTime: Long = System.currentTimeMillis() / 1000) =
    HttpResponse(
        status, headers.toList() + ("X-Synheart-Server-Time" to "$serverTime"),
        """{"error":"$code","message":"m","request_id":"r","server_timestamp":$serverTime}""".toByteArray(),
    )

internal fun HttpRequest.isTo(path: String): Boolean = url.endsWith(path)
