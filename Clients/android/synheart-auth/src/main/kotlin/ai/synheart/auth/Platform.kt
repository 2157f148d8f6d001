package ai.synheart.auth

import java.io.Closeable
import kotlin.time.Duration

// The platform's functions that the client uses. `ai.synheart.auth.android` has Android's parts; tests have others.
//
// The functions of DeviceKeyStore and RecordStorage may block. The client makes the calls of one object one at a time, on a
// background thread, and waits 30 seconds for each. Then it abandons the call, continues with calls of other kinds, and makes no
// call of this kind until the abandoned one returns.

/** Keeps P-256 private keys that cannot be exported. */
public interface DeviceKeyStore {
    /** Whether [create] attests the key with the challenge, so that each key belongs to one challenge. */
    public val attestsKeys: Boolean

    /**
     * Makes a key and replaces one of the same name.
     *
     * @param alias the key's name: `synheart_auth_{app_id}`, or the same with `_next` appended
     * @param challenge the decoded challenge that a hardware key attestation must name; null where none is wanted
     * @return the public key as X.509 SubjectPublicKeyInfo, DER, 91 bytes
     * @throws DeviceKeyStoreException if no key was made
     */
    public fun create(alias: String, challenge: ByteArray?): ByteArray

    /**
     * The public half of a key; null if the store does not find it. One such answer does not prove that the key is lost.
     *
     * @throws DeviceKeyStoreException if the store fails, for example because it is locked
     */
    public fun load(alias: String): ByteArray?

    /**
     * Signs SHA-256 of the message.
     *
     * @return the ECDSA signature, DER
     * @throws DeviceKeyStoreException with [DeviceKeyStoreException.Code.NOT_FOUND] if there is no such key
     */
    public fun sign(alias: String, message: ByteArray): ByteArray

    /**
     * Proves that the store works: the key's canary, another key of the same kind and age, must sign. A canary that is missing or
     * invalidated is created again, and the new one must sign.
     *
     * @param alias the name of the key that is missing or cannot be used
     * @throws DeviceKeyStoreException if the store does not work
     */
    public fun check(alias: String)

    /** Deletes a key. Succeeds if there is no such key. */
    public fun delete(alias: String)
}

/** A failure of a key store. The message is for logs of debug builds. */
public class DeviceKeyStoreException(
    /** The meaning of the failure for the identity. */
    public val code: Code,
    message: String = code.name,
    cause: Throwable? = null,
) : Exception(message, cause) {
    /** The meaning of a failure for the identity. */
    public enum class Code {
        /**
         * The store does not find the key. The client treats it as lost after two such answers, if the canaries work (see
         * [DeviceKeyStore.check]).
         */
        NOT_FOUND,

        /** The system permanently refuses the key. The client treats the key as lost after one such answer. */
        INVALIDATED,

        /** The store is locked or busy. The key may be intact. */
        UNAVAILABLE,

        /** This device or build has no such store. */
        UNSUPPORTED,

        /** The app is built or configured wrongly. The client then throws `NOT_CONFIGURED` with the message. */
        MISCONFIGURED,

        /**
         * Any other failure, such as a key that cannot be used. The client treats the key as lost after two such answers, if
         * the canaries work (see [DeviceKeyStore.check]).
         */
        FAILED,
    }
}

/** Gets evidence for the app and a key: a Play Integrity token, an Android Key Attestation chain, or both. */
public fun interface AttestationProvider {
    /**
     * Gets evidence. After 30 seconds the client cancels the call and fails the operation.
     *
     * @throws AttestationException if there is none
     */
    public suspend fun attest(subject: AttestationSubject): AttestationEvidence
}

/** The key to attest, and what the evidence must cover. */
public class AttestationSubject(
    /** The app's id. */
    public val appId: String,
    /** The key's name in the key store. */
    public val alias: String,
    /** The key as X.509 SubjectPublicKeyInfo, DER. */
    public val publicKey: ByteArray,
    /** The decoded challenge, which a key attestation names. */
    public val challenge: ByteArray,
    /** The nonce of Play Integrity (classic), or its request hash (standard): base64url without padding, 43 characters. */
    public val nonce: String,
)

/** The evidence of a provider. The client never persists or logs it. */
public class AttestationEvidence(
    /** The Play Integrity token. */
    public val proof: String?,
    /** The key attestation: DER certificates, leaf first. */
    public val keyAttestation: List<ByteArray>? = null,
)

/** A failure of an attestation provider. The message is for logs of debug builds. */
public class AttestationException(
    /** The meaning of the failure for the registration. */
    public val code: Code,
    message: String = code.name,
    cause: Throwable? = null,
) : Exception(message, cause) {
    /** The meaning of a failure for the registration. */
    public enum class Code {
        /** This device or build cannot attest. */
        UNSUPPORTED,

        /** The provider refused. */
        REFUSED,

        /** The provider cannot answer now. The client asks again, with back-off, while the challenge lives. */
        UNAVAILABLE,

        /** The app is built or configured wrongly. The client then throws `NOT_CONFIGURED` with the message. */
        MISCONFIGURED,
    }
}

/** Keeps one small record for each app. A name is 64 hexadecimal digits: SHA-256 of the app id. */
public interface RecordStorage {
    /**
     * Reads the record; null only if there certainly is none.
     *
     * @throws StorageException with [StorageException.Code.UNAVAILABLE] on a locked device, and for an I/O error; with
     *   [StorageException.Code.DAMAGED] if the bytes exist but can never be read again
     */
    public fun read(name: String): ByteArray?

    /** Replaces the record atomically and durably. */
    public fun write(name: String, bytes: ByteArray)

    /** Removes the record. Succeeds if there is none. */
    public fun remove(name: String)

    /**
     * Proves that the storage works with a canary, a small test value: reads the old canary back, and writes a new one.
     *
     * @throws StorageException if it does not work
     */
    public fun check()

    /** Keeps a copy of a record that could not be decoded. */
    public fun setAside(name: String, bytes: ByteArray)

    /**
     * Takes a lock that all threads and processes sharing the storage respect; null if another holder has it. A process that
     * dies loses its locks. Closing the lock releases it; a second close does nothing.
     *
     * @param scope one of several locks of a record: `operation` or `record`
     */
    public fun tryLock(name: String, scope: String): Closeable?

    /**
     * A value that differs after each change of the record by any process; null if it is unknown. With it, the client need not read
     * the record for each signature. The function must not block, and should take only microseconds.
     */
    public fun version(name: String): RecordVersion? = null
}

/** Distinguishes successive versions of a record, by numbers such as a file's inode, size and time of change. */
public data class RecordVersion(
    /** The file's inode, or a count of changes. */
    public val serial: Long,
    /** Bytes. */
    public val size: Long = 0,
    /** The seconds of the time of change. */
    public val seconds: Long = 0,
    /** The nanoseconds of the time of change. */
    public val nanoseconds: Long = 0,
)

/** A failure of the storage. The message is for logs of debug builds, and holds nothing of a record. */
public class StorageException(
    /** The meaning of the failure for the identity. */
    public val code: Code,
    message: String = code.name,
    cause: Throwable? = null,
) : Exception(message, cause) {
    /** The meaning of a failure for the identity. */
    public enum class Code {
        /** The record cannot be read or written now, because the device is locked or an I/O error occurred. The record may be intact. */
        UNAVAILABLE,

        /** The record is there, and can never be read again. */
        DAMAGED,

        /** The app is built or configured wrongly. The client then throws `NOT_CONFIGURED` with the message. */
        MISCONFIGURED,
    }
}

/**
 * Sends one request and returns the answer. Follows no redirects, keeps no cookies, caches nothing.
 *
 * It sends a request once: never again by itself after a failure, a redirect or a challenge. It does not block the thread of its
 * caller.
 */
public fun interface HttpTransport {
    /**
     * Sends the request. Ends at the request's deadline, and when its caller is cancelled.
     *
     * @throws TransportException if no answer came, or one that is larger than the request allows
     */
    public suspend fun send(request: HttpRequest): HttpResponse
}

/** A request that got no usable answer: it could not be sent, no answer came, or the answer is too large. */
public class TransportException(
    message: String,
    /** Whether an answer came that is larger than the request allows. */
    public val isTooLarge: Boolean = false,
    /** Whether the request was not sent, and cannot be sent as it is: no later attempt helps. */
    public val isUnsendable: Boolean = false,
    /** Whether the request may have arrived. False only if certainly nothing of it was sent. */
    public val mayHaveArrived: Boolean = !isUnsendable,
    cause: Throwable? = null,
) : Exception(message, cause)

/** The clocks of a device. */
public interface DeviceClock {
    /** Milliseconds since 1970-01-01T00:00:00Z on the device's clock, which may be wrong and may jump. */
    public val wallMillis: Long

    /** Milliseconds since some fixed moment. It continues while the device sleeps, and never jumps. */
    public val elapsedMillis: Long
}

/** Makes random bytes that cannot be guessed. */
public fun interface RandomSource {
    /** New random bytes. */
    public fun bytes(count: Int): ByteArray
}

/** Waits. It is injected, so that tests do not wait. */
public fun interface Sleeper {
    /** Waits for this long, or until the caller is cancelled. */
    public suspend fun sleep(duration: Duration, purpose: SleepPurpose)
}

/** The reason why the client waits. */
public enum class SleepPurpose {
    /** For the next attempt. */
    RETRY,

    /** For a lock that another process or coroutine holds. */
    TURN,

    /** The delay after which a call is treated as hung. */
    DEADLINE,
}

/** Receives log entries. An entry has no free text, so only the values of its typed properties can be logged. */
public fun interface AuthLogger {
    /** Takes an entry. Must not block. */
    public fun log(entry: LogEntry)
}
