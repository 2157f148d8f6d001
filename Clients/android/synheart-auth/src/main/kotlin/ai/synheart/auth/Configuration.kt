package ai.synheart.auth

import ai.synheart.auth.concurrency.BlockingCalls
import ai.synheart.auth.identity.Launch
import ai.synheart.auth.wire.FormException
import ai.synheart.auth.wire.RequestOrigin
import java.security.SecureRandom
import kotlin.time.Duration
import kotlinx.coroutines.delay

/**
 * The settings of a client, and the platform functions that it uses. `ai.synheart.auth.android.AndroidConfiguration`
 * makes a configuration with Android's functions.
 *
 * @param baseUrl the URL of the auth service: https, or http to this machine
 * @param origins the origins besides the auth service for which `send` and `sign` sign: https, or http to this machine
 * @param aliases earlier origins of the auth service, if it moved to another host. Identity records that name one of
 *   them remain valid. The client sends nothing to them
 * @throws SynheartAuthException.NotConfigured for a malformed URL, for plain http to a host that is not loopback, and for a
 *   `deviceLocalId` that is not a UUID
 */
public class Configuration(
    baseUrl: String,
    /** Keeps keys. */
    public val keyStore: DeviceKeyStore,
    /** Keeps records. */
    public val storage: RecordStorage,
    /** Attests the app and its key. */
    public val attestation: AttestationProvider,
    /** Tells the time. */
    public val clock: DeviceClock,
    /** Sends requests. */
    public val transport: HttpTransport = UrlConnectionTransport(),
    /** Makes nonces and jitter. */
    public val random: RandomSource = SystemRandom,
    /** Waits between attempts and for deadlines. */
    public val sleeper: Sleeper = DelaySleeper,
    /** Receives log entries. */
    public val logger: AuthLogger = AuthLogger {},
    origins: Set<String> = emptySet(),
    aliases: Set<String> = emptySet(),
    /** A UUID for correlation that registration sends. The service never trusts it. */
    public val deviceLocalId: String? = null,
    /**
     * Whether the client does the work of [DeviceAuth.maintain] in the background. After `KEY_EXPIRED` the client rotates
     * even if this is false.
     */
    public val rotatesAutomatically: Boolean = true,
    /**
     * The signature scheme of the app's requests. A device that has once signed under scheme 2 keeps it, because the service then
     * refuses scheme 1. No call can ask for another scheme.
     */
    public val scheme: SignatureScheme = SignatureScheme.ONE,
) {
    internal val origin: RequestOrigin = origin(baseUrl)
    internal val origins: Set<RequestOrigin> = origins.mapTo(HashSet(), ::origin)
    internal val aliases: Set<String> = aliases.mapTo(HashSet()) { origin(it).text }

    /** The service's scheme, host and port, such as `https://auth.example.com`. */
    public val baseUrl: String get() = origin.text

    // All identities of a configuration share these objects: a key store or a storage that hangs for one identity hangs for all.
    internal val keyCalls = BlockingCalls(sleeper)
    internal val storageCalls = BlockingCalls(sleeper)
    internal val launch = Launch(clock)

    /**
     * The values by which `configure` compares two configurations. Objects such as the key store are compared by
     * identity, unless their class defines `equals`. `AndroidConfiguration` sets another list.
     */
    internal var values: List<Any?> = listOf(
        origin, keyStore, storage, attestation, clock, transport, random, sleeper, logger, this.origins, this.aliases, deviceLocalId,
        rotatesAutomatically, scheme,
    )

    /** Starts slow preparations early. Does not block. */
    internal var warmUp: () -> Unit = {}

    internal fun prepare() = warmUp()

    init {
        if (deviceLocalId != null && !UUID.matches(deviceLocalId)) throw failure(OwnCode.NOT_CONFIGURED, "deviceLocalId must be a UUID")
    }

    private companion object {
        val UUID = Regex("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

        /** Reads `https://auth.example.com`, with or without a trailing slash. */
        fun origin(text: String): RequestOrigin {
            val origin = try {
                RequestOrigin.parse(text.removeSuffix("/"))
            } catch (error: FormException) {
                throw failure(OwnCode.NOT_CONFIGURED, "not the URL of a service: ${error.message}", error)
            }
            if (!origin.isSecure) throw failure(OwnCode.NOT_CONFIGURED, "https is needed for any host but this one")
            return origin
        }
    }
}

/** The system's random numbers. */
public object SystemRandom : RandomSource {
    private val random = SecureRandom()

    override fun bytes(count: Int): ByteArray = ByteArray(count).also(random::nextBytes)
}

/** Waits by `delay`, whatever the purpose. */
public object DelaySleeper : Sleeper {
    override suspend fun sleep(duration: Duration, purpose: SleepPurpose): Unit = delay(duration)
}
