package ai.synheart.auth.android

import ai.synheart.auth.AttestationException
import ai.synheart.auth.AttestationProvider
import ai.synheart.auth.AttestationSubject
import ai.synheart.auth.DeviceKeyStore
import ai.synheart.auth.DeviceKeyStoreException
import ai.synheart.auth.identity.Canaries
import ai.synheart.auth.identity.PlatformAnswer
import ai.synheart.auth.identity.Verdict
import ai.synheart.auth.identity.VerdictTable
import ai.synheart.auth.identity.answer
import ai.synheart.auth.wire.FormException
import ai.synheart.auth.wire.PublicKey
import ai.synheart.auth.wire.base64Url
import ai.synheart.auth.wire.hex
import ai.synheart.auth.wire.rawSignature
import ai.synheart.auth.wire.sha256
import ai.synheart.auth.wire.writeJson
import android.content.Context
import android.util.Log
import java.io.IOException
import java.util.Collections
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.TimeUnit
import java.util.concurrent.TimeoutException
import kotlinx.coroutines.TimeoutCancellationException
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout

/**
 * The functions that Synheart Core's runtime looks up by name, over this device's Keystore and Google's attestation.
 *
 * The library `libsynheart_native_crypto.so` of the module `synheart-auth-runtime` exports them and calls this object. The
 * functions use Keystore keys named `synheart_device_{device_id}`, and never an identity of [ai.synheart.auth.SynheartAuth].
 */
public object RuntimeHostRegistry {
    @Volatile
    internal var runtime: RuntimeParts? = null
        private set

    /**
     * Gives the native functions that the runtime calls their context and configuration. `synheart-auth-runtime` does so
     * when the app starts, with the defaults and in the app's main process. Call `install` for another configuration, and in
     * other processes, before the runtime's first call.
     *
     * @param configuration the settings of attestation and keys. The functions send nothing, so its URLs are not used
     * @param earlier the storage in which an earlier release of the app kept the runtime's secrets
     */
    @JvmStatic
    @JvmOverloads
    public fun install(
        context: Context, configuration: AndroidConfiguration = AndroidConfiguration("https://localhost", proof = AndroidProof.PLAY_INTEGRITY),
        earlier: EarlierSecrets? = null,
    ): Unit = synchronized(this) {
        val parts = configuration.with(context)
        val secrets = RuntimeSecrets(storageContext(context))
        runtime = RuntimeParts(parts.keyStore, parts.attestation, if (earlier == null) secrets else AdoptingSecrets(secrets, earlier)) {
            secrets.directory()
        }
    }

    /** Calls [install] with the defaults, unless it was called before. */
    @JvmStatic
    public fun installIfNeeded(context: Context): Unit = synchronized(this) { if (runtime == null) install(context) }

    /** For tests. */
    internal fun install(runtime: RuntimeParts?) {
        this.runtime = runtime
    }

    // As in AndroidConfiguration: the application's own context uses credential-encrypted storage, whatever storage this context
    // uses.
    private fun storageContext(context: Context): Context {
        val app: Context = context.applicationContext ?: context
        return if (context.isDeviceProtectedStorage) app.createDeviceProtectedStorageContext() else app
    }
}

/** The runtime's functions over a key store, a provider of attestations and a storage of secrets. They block. */
internal class RuntimeParts(
    private val keyStore: DeviceKeyStore, private val attestation: AttestationProvider, private val secrets: SecretStorage,
    private val pause: (Long) -> Unit = { Thread.sleep(it) }, private val limitMillis: Long = LIMIT_MILLIS,
    private val directory: () -> RecordDirectory,
) {
    /** The keys whose absence is certain. */
    private val missing: MutableSet<String> = Collections.newSetFromMap(ConcurrentHashMap())

    // Separate threads: a Keystore that hangs must not block the runtime's secrets, and Google must not block signatures.
    private val keyCalls = BoundedCalls("keys", limitMillis)
    private val attestationCalls = BoundedCalls("attestation", limitMillis)
    private val secretCalls = BoundedCalls("secrets", limitMillis)

    /** Loads the key, or makes it. Returns its public half as `{"x":"<b64url>","y":"<b64url>"}`. A permanently lost key is replaced. */
    fun generateKey(deviceId: String): ByteArray = keyCalls.run {
        val point = PublicKey.of(loadOrCreate(alias(deviceId))).spki.let { it.copyOfRange(it.size - 2 * COORDINATE, it.size) }
        writeJson(
            "x" to point.copyOf(COORDINATE).base64Url(), "y" to point.copyOfRange(COORDINATE, 2 * COORDINATE).base64Url(),
        )
    }

    /** Only one thread of one process at a time makes a key, so that all callers get the stored key. */
    private fun loadOrCreate(alias: String): ByteArray = find(alias) ?: synchronized(creation) {
        val lock = "${sha256("key $alias".toByteArray()).hex()}.creation.lock"
        val directory = directory()
        repeat((limitMillis / TURN_MILLIS).toInt()) {
            directory.tryLock(lock)?.use { return find(alias) ?: keyStore.create(alias, challenge = null).also { missing -= alias } }
            pause(TURN_MILLIS)
        }
        throw IOException("another process holds the lock of the key's creation")
    }

    /**
     * The public half of a key that signs; null if the key is absent, or permanently lost.
     *
     * [VerdictTable] judges the answers of the key store. The runtime has no result "suspected", so the call waits until a
     * second answer can confirm the first. An absence that was confirmed once, or that follows [deleteKey], needs no second
     * answer.
     */
    private fun find(alias: String, remainingMillis: Long? = null, canaries: Canaries = Canaries.NOT_ASKED): ByteArray? {
        val look = look(alias)
        return when (val verdict = VerdictTable.verdict(look.answer, remainingMillis, canaries)) {
            // Another process may have made the key again, so it is no longer known to be missing.
            Verdict.Intact -> look.key.also { missing -= alias }
            Verdict.Lost -> null.also { if (look.answer == PlatformAnswer.SUSPICIOUS) missing += alias }
            Verdict.Unwell -> throw look.error ?: IOException("the key store does not work")
            is Verdict.Suspected -> {
                if (alias in missing) return null
                pause(verdict.retryAfterMillis)
                find(alias, remainingMillis = 0)
            }
            Verdict.AskCanaries -> {
                keyStore.check(alias)
                find(alias, remainingMillis = 0, Canaries.WORK)
            }
        }
    }

    private class Look(val answer: PlatformAnswer, val key: ByteArray? = null, val error: DeviceKeyStoreException? = null)

    private fun look(alias: String): Look = try {
        val key = keyStore.load(alias)
        if (key == null) {
            Look(PlatformAnswer.SUSPICIOUS)
        } else {
            keyStore.sign(alias, PROBE)
            Look(PlatformAnswer.WORKS, key)
        }
    } catch (error: DeviceKeyStoreException) {
        Look(error.answer, error = error)
    }

    /** base64url(r || s) over SHA-256 of the message. */
    fun signBytes(deviceId: String, message: ByteArray): ByteArray =
        keyCalls.run { rawSignature(keyStore.sign(alias(deviceId), message)).base64Url().toByteArray() }

    /** `{"format":"play-integrity","blob":"<token>"}` with base64url(hash) as the token's nonce; [noAttestation] if there is no token. */
    fun attestation(deviceId: String, hash: ByteArray): ByteArray {
        if (hash.size != HASH) return noAttestation("the hash has not 32 bytes")
        val alias = alias(deviceId)
        val key = keyCalls.run { keyStore.load(alias) } ?: return noAttestation("no such key")
        val subject = AttestationSubject("native", alias, key, hash, hash.base64Url())
        val proof = try {
            attestationCalls.run { runBlocking { withTimeout(limitMillis) { attestation.attest(subject) } } }.proof
        } catch (error: AttestationException) {
            Log.println(Log.WARN, TAG, "get_attestation: ${error.code}")
            return noAttestation(error.code.name)
        } catch (_: TimeoutException) {
            return noAttestation(AttestationException.Code.UNAVAILABLE.name)
        } catch (_: TimeoutCancellationException) {
            return noAttestation(AttestationException.Code.UNAVAILABLE.name)
        }
        return if (proof == null) noAttestation("no Play Integrity token") else writeJson("format" to "play-integrity", "blob" to proof)
    }

    /** False only if the key certainly does not exist, or is permanently lost. */
    fun keyExists(deviceId: String): Boolean = keyCalls.run { find(alias(deviceId)) != null }

    fun deleteKey(deviceId: String): Unit = keyCalls.run {
        keyStore.delete(alias(deviceId))
        missing += alias(deviceId)
    }

    fun secureStore(service: String, key: String, value: String): Unit =
        secretCalls.run { secrets.write(service, key, value.toByteArray()) }

    /**
     * The secret; null if there is none. The runtime has no result "not now", so storage that cannot be read gets 2 s of retries.
     */
    fun secureLoad(service: String, key: String): ByteArray? = secretCalls.run {
        for (millis in LOAD_PAUSES) {
            try { return@run secrets.read(service, key) } catch (_: SecretsUnavailableException) { }
            pause(millis)
        }
        secrets.read(service, key)
    }

    fun secureDelete(service: String, key: String): Unit = secretCalls.run { secrets.remove(service, key) }

    companion object {
        const val TAG = "SynheartAuth"
        private const val COORDINATE = 32
        private const val HASH = 32
        private const val TURN_MILLIS = 10L
        private val LIMIT_MILLIS = TimeUnit.SECONDS.toMillis(30)

        /** 1.9 s in total. */
        private val LOAD_PAUSES = longArrayOf(100, 200, 400, 600, 600)

        /** A message that no verifier accepts. */
        private val PROBE = "synheart-auth/probe".toByteArray()
        private val creation = Any()

        private fun alias(deviceId: String): String = "synheart_device_$deviceId"

        fun noAttestation(reason: String): ByteArray = writeJson("format" to "none", "blob" to "", "reason" to reason)
    }
}

/** The functions that `libsynheart_native_crypto.so` calls, by name and descriptor. Texts are UTF-8. The functions throw nothing. */
internal object RuntimeFunctions {
    /** The maximum length, in bytes, of a text that the runtime passes. The runtime keeps nothing longer. */
    private const val MAXIMUM_TEXT = 64 * 1024

    @JvmStatic
    fun generateKey(deviceId: ByteArray): ByteArray? = attempt("generate_key", null) { generateKey(id(deviceId)) }

    @JvmStatic
    fun signBytes(deviceId: ByteArray, message: ByteArray): ByteArray? = attempt("sign_bytes", null) { signBytes(id(deviceId), message) }

    @JvmStatic
    fun getAttestation(deviceId: ByteArray, hash: ByteArray): ByteArray? =
        attempt("get_attestation", { RuntimeParts.noAttestation(describe(it)) }) { attestation(id(deviceId), hash) }

    /** Returns 1 if the key exists, and also if the Keystore cannot answer now: a key that cannot be checked must not look lost. */
    @JvmStatic
    fun keyExists(deviceId: ByteArray): Int {
        val id = try { id(deviceId) } catch (_: FormException) { return 0 }
        return attempt("key_exists", { 1 }) { if (keyExists(id)) 1 else 0 } ?: 1
    }

    @JvmStatic
    fun deleteKey(deviceId: ByteArray): Int = done("delete_key") { deleteKey(id(deviceId)) }

    @JvmStatic
    fun secureStore(service: ByteArray, key: ByteArray, value: ByteArray): Int =
        done("secure_store") { secureStore(text(service), text(key), text(value)) }

    @JvmStatic
    fun secureLoad(service: ByteArray, key: ByteArray): ByteArray? = attempt("secure_load", null) { secureLoad(text(service), text(key)) }

    @JvmStatic
    fun secureDelete(service: ByteArray, key: ByteArray): Int = done("secure_delete") { secureDelete(text(service), text(key)) }

    private fun done(function: String, body: RuntimeParts.() -> Unit): Int = attempt(function, { 1 }) { body(); 0 } ?: 1

    /** Runs [body]. Logs only the classes of a failure: messages may contain values that must not be logged. */
    private fun <Value : Any> attempt(function: String, failed: ((Throwable) -> Value)?, body: RuntimeParts.() -> Value?): Value? = try {
        val runtime = RuntimeHostRegistry.runtime ?: throw IllegalStateException()
        runtime.body()
    } catch (error: Throwable) {
        val reason = if (error is IllegalStateException && RuntimeHostRegistry.runtime == null) {
            "RuntimeHostRegistry.install was not called in this process"
        } else {
            generateSequence(error) { it.cause }.take(CAUSES).joinToString(" < ") { describe(it) }
        }
        Log.println(Log.ERROR, RuntimeParts.TAG, "$function: $reason")
        failed?.invoke(error)
    }

    private const val CAUSES = 4

    private fun describe(error: Throwable): String =
        error.javaClass.simpleName + if (error is DeviceKeyStoreException) " ${error.code}" else ""

    private fun id(bytes: ByteArray): String = text(bytes).ifEmpty { throw FormException("the device id is empty") }

    /** Strict UTF-8. */
    private fun text(bytes: ByteArray): String {
        if (bytes.size > MAXIMUM_TEXT) throw FormException("the text is longer than 64 KiB")
        val text = String(bytes, Charsets.UTF_8)
        if (!text.toByteArray().contentEquals(bytes)) throw FormException("the text is not UTF-8")
        return text
    }
}
