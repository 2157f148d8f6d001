package ai.synheart.auth.identity

import ai.synheart.auth.Configuration
import ai.synheart.auth.DeviceKeyStore
import ai.synheart.auth.DeviceKeyStoreException
import ai.synheart.auth.OwnCode
import ai.synheart.auth.Situation
import ai.synheart.auth.StorageException
import ai.synheart.auth.SynheartAuthException
import ai.synheart.auth.concurrency.CallKind
import ai.synheart.auth.failure
import kotlin.time.Duration.Companion.milliseconds

/** Uses keys that should exist. If a key fails, decides by [VerdictTable] whether it is lost. */
internal class KeyJudge(private val configuration: Configuration, private val ledger: IdentityLedger, private val calls: KeyCalls) {
    /** Makes one call of the key store. Throws only [DeviceKeyStoreException]. */
    fun interface KeyCalls {
        suspend fun make(kind: CallKind, body: (DeviceKeyStore) -> Any?): Any?
    }

    /** An answer of the key store, with its value or failure. */
    private class Answer<Value>(val kind: PlatformAnswer, val value: Value?, val error: DeviceKeyStoreException?)

    /**
     * Returns what [body] gets from this key. Null from [body] means that the key was not found.
     *
     * @throws SynheartAuthException `KEY_INVALIDATED` only if the key is lost, or is no longer the record's; an error with recovery
     *   `RETRY` if the key store does not work now, or the key is only suspected; `NOT_CONFIGURED` or `KEYSTORE_ERROR` if the key
     *   store can never work
     */
    suspend fun <Value : Any> ask(key: KeyReference, kind: CallKind, body: (DeviceKeyStore) -> Value?): Value {
        val first = answer(kind, body)
        val remaining = if (first.kind == PlatformAnswer.SUSPICIOUS) remainingMillis(key) else null
        return when (val verdict = VerdictTable.verdict(first.kind, remaining)) {
            Verdict.Intact -> first.value!!
            Verdict.Lost -> throw lost(first.error)
            Verdict.Unwell -> throw unwell(first.error)
            is Verdict.Suspected -> {
                if (verdict.isFirst) ledger.tryApply(IdentityEvent.KeySuspected(key, configuration.launch.suspicion(key.alias)))
                throw failure(
                    Situation.KEY_SUSPECTED, "the key store does not give the key", first.error,
                    retryAfter = verdict.retryAfterMillis.milliseconds,
                )
            }
            Verdict.AskCanaries -> decide(key.alias, kind, body)
        }
    }

    /** The time until a second suspicious answer about this key is believed; null if there was no first one. */
    private suspend fun remainingMillis(key: KeyReference): Long? {
        val record = ledger.loadOfAnyOrigin()
        // Another process has replaced the key meanwhile, so the answer is about a key that is no longer in use.
        if (!record.names(key)) throw lost(null)
        return record.suspicions[key.alias]?.let(ledger.seenSuspicions::remainingMillis)
    }

    /**
     * Decides after the second suspicious answer. The key is lost only if the canaries (a test key and a test file) work
     * and the key still does not.
     */
    private suspend fun <Value : Any> decide(alias: String, kind: CallKind, body: (DeviceKeyStore) -> Value?): Value {
        val failure = canaries(alias)
        val last = answer(kind, body)
        return when (VerdictTable.verdict(last.kind, remainingMillis = 0, if (failure == null) Canaries.WORK else Canaries.FAIL)) {
            Verdict.Intact -> last.value!!
            Verdict.Lost -> throw lost(last.error)
            else -> throw unwell(failure ?: last.error)
        }
    }

    private suspend fun <Value : Any> answer(kind: CallKind, body: (DeviceKeyStore) -> Value?): Answer<Value> = try {
        @Suppress("UNCHECKED_CAST")
        val value = calls.make(kind, body) as Value?
        Answer(if (value == null) PlatformAnswer.SUSPICIOUS else PlatformAnswer.WORKS, value, null)
    } catch (error: DeviceKeyStoreException) {
        Answer(error.answer, null, error)
    }

    /** The failure of the key store's canary (a test key) or of the storage's (a test file); null if both canaries work. */
    private suspend fun canaries(alias: String): Exception? = try {
        calls.make(CallKind.CHECK_KEYS) { it.check(alias) }
        ledger.checkStorage()
        null
    } catch (error: DeviceKeyStoreException) {
        error
    } catch (error: StorageException) {
        error
    }

    private fun lost(error: DeviceKeyStoreException?) = failure(OwnCode.KEY_INVALIDATED, "the key is gone", error)

    private fun unwell(error: Exception?) = when ((error as? DeviceKeyStoreException)?.code) {
        DeviceKeyStoreException.Code.MISCONFIGURED -> failure(OwnCode.NOT_CONFIGURED, error.message.orEmpty(), error)
        DeviceKeyStoreException.Code.UNSUPPORTED -> failure(OwnCode.KEYSTORE_ERROR, error.message.orEmpty(), error)
        else -> failure(Situation.KEY_STORE_UNAVAILABLE, error?.message ?: "the key store does not work", error)
    }
}

/** The meaning of a key store's failure for a key that should exist. */
internal val DeviceKeyStoreException.answer: PlatformAnswer
    get() = when (code) {
        DeviceKeyStoreException.Code.INVALIDATED -> PlatformAnswer.FINAL
        DeviceKeyStoreException.Code.NOT_FOUND, DeviceKeyStoreException.Code.FAILED -> PlatformAnswer.SUSPICIOUS
        DeviceKeyStoreException.Code.UNAVAILABLE, DeviceKeyStoreException.Code.UNSUPPORTED, DeviceKeyStoreException.Code.MISCONFIGURED ->
            PlatformAnswer.TEMPORARY
    }

/** Whether the error only reports a suspicion that a key is lost. The identity still exists. */
internal val SynheartAuthException.isSuspicion: Boolean get() = failure.situation == Situation.KEY_SUSPECTED
