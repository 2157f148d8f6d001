package ai.synheart.auth.android

import ai.synheart.auth.AttestationException
import ai.synheart.auth.AttestationException.Code
import ai.synheart.auth.AttestationProvider
import ai.synheart.auth.AuthLogger
import ai.synheart.auth.Configuration
import ai.synheart.auth.DelaySleeper
import ai.synheart.auth.DeviceClock
import ai.synheart.auth.HttpTransport
import ai.synheart.auth.LogEntry
import ai.synheart.auth.SignatureScheme
import ai.synheart.auth.Sleeper
import ai.synheart.auth.SynheartAuth
import ai.synheart.auth.UrlConnectionTransport
import android.content.Context
import android.os.SystemClock
import android.util.Log

/**
 * The choice of Google's proofs that the client sends. The app's policy on the service (`android.proof`) names the accepted proofs.
 * The service refuses a wrong proof even if none is required.
 */
public enum class AndroidProof(
    internal val usesPlayIntegrity: Boolean, internal val usesKeyAttestation: Boolean,
    internal val needsPlayIntegrity: Boolean, internal val needsKeyAttestation: Boolean,
) {
    /** A Play Integrity token. Keys are not attested. */
    PLAY_INTEGRITY(true, false, true, false),

    /** The key's own attestation. The app needs no Play Integrity. */
    KEY_ATTESTATION(false, true, false, true),

    /** Both. A device that cannot give both cannot register. */
    BOTH(true, true, true, true),

    /** Any proof that the device can give: both if possible, one if it cannot attest keys or has no Google Play. */
    EITHER(true, true, false, false),
}

/** The two kinds of Play Integrity requests. */
public enum class IntegrityRequests {
    /** Fast after one preparation. Google decodes the tokens for the service, which needs a service account for that. */
    STANDARD,

    /** Each request asks Google. The service can decode the tokens by itself, with the keys of Play Console. */
    CLASSIC,
}

/**
 * The settings of an Android app.
 *
 * @param baseUrl the URL of the auth service: https, or http to this machine
 * @param cloudProjectNumber the number of the Google Cloud project that is linked in Play Console. Standard requests need it
 */
public class AndroidConfiguration(
    public val baseUrl: String,
    public val cloudProjectNumber: Long? = null,
    /** Which proofs to send. */
    public val proof: AndroidProof = AndroidProof.EITHER,
    /** Which kind of Play Integrity requests to make. Without a project number there are only classic ones. */
    public val requests: IntegrityRequests = if (cloudProjectNumber == null) IntegrityRequests.CLASSIC else IntegrityRequests.STANDARD,
    /**
     * Whether keys live in the StrongBox, where there is one. The StrongBox is a separate chip, and takes 50 to 500 ms for each
     * signature; the trusted execution environment, the default, takes 5 to 30 ms. `docs/storage.md` compares the two.
     */
    public val usesStrongBox: Boolean = false,
    /** A provider to use instead of Google's, such as `DevelopmentAttestation` in a debug build for an emulator; null for Google's. */
    public val attestation: AttestationProvider? = null,
    /** Sends requests. */
    public val transport: HttpTransport = UrlConnectionTransport(),
    /** Receives log entries. */
    public val logger: AuthLogger = LogcatLogger(),
    /** Other origins for which the client signs, such as `https://api.example.com`. */
    public val origins: Set<String> = emptySet(),
    /** Earlier origins of the auth service. */
    public val aliases: Set<String> = emptySet(),
    /** A UUID for correlation that registration sends. */
    public val deviceLocalId: String? = null,
    /** Whether the client does the work of `maintain` in the background. After `KEY_EXPIRED` the client rotates even if this is false. */
    public val rotatesAutomatically: Boolean = true,
    /** The signature scheme of the app's requests. */
    public val scheme: SignatureScheme = SignatureScheme.ONE,
) {
    /**
     * The client's configuration on this device, with Android's Keystore, storage and clock.
     *
     * Records are in the storage of the context: in credential-encrypted storage, unless the context comes from
     * `createDeviceProtectedStorageContext`. The two storages hold separate identities.
     *
     * @throws ai.synheart.auth.SynheartAuthException.NotConfigured for an invalid setting, such as a malformed URL
     */
    public fun with(context: Context): Configuration = with(context, pause = Keystore.PAUSE)

    internal fun with(context: Context, sleeper: Sleeper = DelaySleeper, pause: () -> Unit): Configuration {
        val app = applicationContext(context)
        // Two storages of one app must not share keys.
        val keystore = Keystore(prefix = if (app.isDeviceProtectedStorage) "device_protected/" else "", pause)
        val attestation = attestation
        val keys = AndroidKeyStore(keystore, if (attestation == null) proof.ofKeys else AndroidKeyStore.Attestation.NEVER, usesStrongBox)
        val google = AndroidAttestation(proof, { tokens(app) }, keystore, sleeper, keys)
        return Configuration(
            baseUrl = baseUrl,
            keyStore = keys,
            storage = FileStorage(app, EncryptedRecords(keystore)),
            attestation = attestation ?: google,
            clock = AndroidClock, sleeper = sleeper, transport = transport, logger = logger, origins = origins, aliases = aliases,
            deviceLocalId = deviceLocalId, rotatesAutomatically = rotatesAutomatically, scheme = scheme,
        ).also {
            if (attestation == null) it.warmUp = google::warmUp
            it.values = listOf(
                it.origin, it.origins, it.aliases, cloudProjectNumber, proof, requests, usesStrongBox, attestation,
                // Each configuration makes a new default transport and logger. So objects of these two classes are not compared.
                transport.takeUnless { transport is UrlConnectionTransport }, logger.takeUnless { logger is LogcatLogger }, deviceLocalId,
                rotatesAutomatically, scheme, app.isDeviceProtectedStorage,
            )
        }
    }

    private fun tokens(app: Context): IntegrityTokens = when (requests) {
        IntegrityRequests.CLASSIC -> ClassicIntegrity(app, cloudProjectNumber)
        IntegrityRequests.STANDARD -> StandardIntegrity(
            app, cloudProjectNumber ?: throw AttestationException(Code.MISCONFIGURED, "standard requests need cloudProjectNumber"),
            AndroidClock::elapsedMillis,
        )
    }

    // The application's own context uses credential-encrypted storage, whatever storage this context uses. A content provider has
    // no application context yet.
    private fun applicationContext(context: Context): Context {
        val app: Context = context.applicationContext ?: context
        return if (context.isDeviceProtectedStorage) app.createDeviceProtectedStorageContext() else app
    }
}

/** A client that runs on Android: `SynheartAuth.create(context, AndroidConfiguration("https://auth.example.com"))`. */
public fun SynheartAuth.Companion.create(context: Context, configuration: AndroidConfiguration): SynheartAuth =
    SynheartAuth(configuration.with(context))

/** Configures a client, such as `SynheartAuth.shared`, to run on Android. */
public fun SynheartAuth.configure(context: Context, configuration: AndroidConfiguration): Unit = configure(configuration.with(context))

private val AndroidProof.ofKeys: AndroidKeyStore.Attestation
    get() = when (this) {
        AndroidProof.PLAY_INTEGRITY -> AndroidKeyStore.Attestation.NEVER
        AndroidProof.KEY_ATTESTATION, AndroidProof.BOTH -> AndroidKeyStore.Attestation.ALWAYS
        AndroidProof.EITHER -> AndroidKeyStore.Attestation.IF_POSSIBLE
    }

/** Android's clocks. */
internal object AndroidClock : DeviceClock {
    override val wallMillis: Long get() = System.currentTimeMillis()
    override val elapsedMillis: Long get() = SystemClock.elapsedRealtime()
}

/** Writes entries to Android's log under one tag. */
public class LogcatLogger(private val tag: String = "SynheartAuth") : AuthLogger {
    override fun log(entry: LogEntry) {
        val priority = when (entry.level) {
            LogEntry.Level.DEBUG -> Log.DEBUG
            LogEntry.Level.INFO -> Log.INFO
            LogEntry.Level.WARNING -> Log.WARN
            LogEntry.Level.ERROR -> Log.ERROR
        }
        Log.println(priority, tag, entry.toString())
    }
}
