package ai.synheart.auth

import ai.synheart.auth.CountingServer.Fate
import ai.synheart.auth.identity.Identity
import ai.synheart.auth.identity.IdentityRecord
import ai.synheart.auth.identity.KeyAlias
import ai.synheart.auth.identity.KeyReference
import ai.synheart.auth.wire.PublicKey
import ai.synheart.auth.wire.hex
import ai.synheart.auth.wire.sha256
import java.io.Closeable
import java.security.KeyPairGenerator
import java.security.Signature
import java.security.spec.ECGenParameterSpec
import java.util.concurrent.ConcurrentHashMap
import kotlin.random.Random
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertTrue

/** A registered device in memory, without a platform. */
internal class MemoryPhone(origin: String, appId: String = APP) : DeviceKeyStore, RecordStorage {
    private val pair = KeyPairGenerator.getInstance("EC").apply { initialize(ECGenParameterSpec("secp256r1")) }.generateKeyPair()
    private val records = ConcurrentHashMap<String, ByteArray>()
    private val locks = ConcurrentHashMap.newKeySet<String>()

    init {
        val key = KeyReference(KeyAlias.primary(appId), PublicKey.of(pair.public.encoded).thumbprint)
        records[sha256(appId.toByteArray()).hex()] = IdentityRecord(
            appId, IdentityState.REGISTERED, Identity.ACTIVE, "123e4567-e89b-42d3-a456-426614174000", key, registeredAt = 1_790_000_000,
            authOrigin = origin,
        ).toBytes()
    }

    override val attestsKeys = false
    override fun create(alias: String, challenge: ByteArray?): ByteArray = pair.public.encoded
    override fun load(alias: String): ByteArray = pair.public.encoded
    override fun sign(alias: String, message: ByteArray): ByteArray = Signature.getInstance("SHA256withECDSA").run {
        initSign(pair.private)
        update(message)
        sign()
    }
    override fun check(alias: String) = Unit
    override fun delete(alias: String) = Unit
    override fun read(name: String): ByteArray? = records[name]
    override fun write(name: String, bytes: ByteArray) {
        records[name] = bytes
    }
    override fun remove(name: String) {
        records.remove(name)
    }
    override fun check() = Unit
    override fun setAside(name: String, bytes: ByteArray) = Unit
    override fun tryLock(name: String, scope: String): Closeable? =
        if (locks.add("$name.$scope")) Closeable { locks.remove("$name.$scope") } else null

    companion object {
        const val APP = "com.example.app"
    }
}

/**
 * Seeded runs of one `send` each against a [CountingServer]. Each transport has two tests of 5,000 runs: one with bodies in memory,
 * one with streamed bodies. The environment variable ONCE_RUNS changes the 5,000.
 */
internal object OnceRuns {
    private val count = System.getenv("ONCE_RUNS")?.toInt() ?: 5_000
    private val writes = setOf("POST", "PATCH")

    /** A counting server, and a device that is registered with it. */
    fun device(scheme: SignatureScheme = SignatureScheme.ONE, body: (CountingServer, SynheartAuth) -> Unit) = CountingServer().use { server ->
        val phone = MemoryPhone(server.url)
        val clock = TestClock()
        val auth = SynheartAuth(
            Configuration(
                server.url, phone, phone, { throw AttestationException(AttestationException.Code.UNSUPPORTED) }, clock,
                sleeper = TestSleeper(clock), rotatesAutomatically = false, scheme = scheme,
            ),
        )
        body(server, auth)
    }

    fun run(
        methods: List<String>, send: (SynheartAuth, HttpRequest) -> HttpResponse, scheme: SignatureScheme = SignatureScheme.ONE,
        errorOf: (Throwable) -> SynheartAuthException?,
    ) {
        var errors = 0
        var unseen = 0
        device(scheme) { server, auth ->
            repeat(count) { seed ->
                // The two tests of a transport use different schemes and different seeds.
                val random = Random(seed + count * scheme.ordinal)
                val fates = List(random.nextInt(1, 4)) { Fate.entries.random(random) }
                server.fates.clear()
                server.fates.addAll(fates)
                val before = server.executions.get()
                val method = methods.random(random)
                val key = if (random.nextInt(4) == 0) listOf("Idempotency-Key" to "$seed") else emptyList()
                val body = if (method in writes || method == "PUT") ByteArray(random.nextInt(200)) else ByteArray(0)
                val result = runCatching { send(auth, HttpRequest(method, "${server.url}/v1/x", key + ("Content-Type" to "text/plain"), body)) }
                val executed = server.executions.get() - before
                val what = "seed $seed: $method $key, $fates: $result, executed $executed times"
                if (method in writes && key.isEmpty()) assertTrue(what, executed <= 1)
                val error = result.exceptionOrNull()
                if (error == null) {
                    if (result.getOrThrow().status == 200) assertTrue(what, executed >= 1)
                } else {
                    errors++
                    errorOf(error)?.let {
                        if (!it.mayHaveHappened) unseen++
                        // A platform may repeat a GET, which is safe.
                        if (!it.mayHaveHappened && method != "GET") assertEquals(what, 0, executed)
                    }
                }
            }
            assertEquals(0, server.followed.get())
            // The runs had errors and requests without an effect, so the checks above had something to check.
            assertTrue("$errors errors", errors > count / 10)
            assertTrue("$unseen errors without an effect", unseen > 0)
            assertFalse(server.requests.get() < count / 2)
        }
    }
}
