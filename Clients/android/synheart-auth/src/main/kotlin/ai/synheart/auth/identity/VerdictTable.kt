package ai.synheart.auth.identity

import ai.synheart.auth.DeviceClock
import java.util.UUID

/** The platform's answer to a call that needs a key or a record that should exist. */
internal enum class PlatformAnswer {
    /** The call succeeded. */
    WORKS,

    /** The system permanently refuses the key. */
    FINAL,

    /** "Not found", "cannot use it", "corrupted", or any other answer without a documented retry. */
    SUSPICIOUS,

    /** Locked, busy, restarting, or an I/O error. */
    TEMPORARY,
}

/** The result of the canaries: a key of the same kind that signs, and a file that is read back. */
internal enum class Canaries { NOT_ASKED, WORK, FAIL }

/**
 * A suspicious answer. It is stored, so that a second suspicious answer in a later launch can confirm it.
 *
 * @param subject the alias of the key, or the digest of the damaged record
 * @param launch the process that got the answer
 * @param atMillis the time of the answer, on that process's clock that does not jump
 */
internal data class Suspicion(val subject: String, val launch: String, val atMillis: Long)

/** The id and the clock of this process, by which suspicions are dated. */
internal class Launch(private val clock: DeviceClock) {
    private val id by lazy { UUID.randomUUID().toString() }
    val nowMillis: Long get() = clock.elapsedMillis

    /** A suspicion that a key or a record is lost. It begins now. */
    fun suspicion(subject: String) = Suspicion(subject, id, clock.elapsedMillis)

    /**
     * The time until a second suspicious answer can confirm the suspicion. For a suspicion of another process, the wait
     * begins when this process first [saw][seenAtMillis] it.
     */
    fun remainingMillis(suspicion: Suspicion, seenAtMillis: Long): Long {
        val since = if (suspicion.launch == id) suspicion.atMillis else seenAtMillis
        return since + VerdictTable.DISTANCE_MILLIS - nowMillis
    }
}

/** The times at which this process first saw the suspicions about one identity. Created at the first use of the identity. */
internal class SeenSuspicions(private val launch: Launch) {
    // Guarded by this object's monitor.
    private val seen = HashMap<Suspicion, Long>()
    private var hasRead = false
    private val firstUseMillis = launch.nowMillis

    /**
     * Notes when this process first saw each of the suspicions that it has just read. For the suspicions of the first reading, this is the
     * time of the identity's first use in this process, because earlier processes may have written them at any time before. A suspicion
     * that first appears at a later reading was written by another running process just now.
     */
    fun note(suspicions: Collection<Suspicion>): Unit = synchronized(this) {
        for (suspicion in suspicions) seen.getOrPut(suspicion) { if (hasRead) launch.nowMillis else firstUseMillis }
        hasRead = true
    }

    /** The time until a suspicion may be confirmed. */
    fun remainingMillis(suspicion: Suspicion): Long =
        launch.remainingMillis(suspicion, synchronized(this) { seen[suspicion] } ?: firstUseMillis)
}

/** What an answer of the platform means for the identity. */
internal sealed interface Verdict {
    /** The key is intact. */
    data object Intact : Verdict

    /** The key is lost. */
    data object Lost : Verdict

    /** The platform does not work. Nothing is lost. */
    data object Unwell : Verdict

    /** The canaries, a test key and a test file, decide whether the key is lost. */
    data object AskCanaries : Verdict

    /**
     * The first suspicious answer, or one too soon after it. Nothing is lost yet; a second suspicious answer is believed
     * after [retryAfterMillis].
     */
    data class Suspected(val isFirst: Boolean, val retryAfterMillis: Long) : Verdict
}

/**
 * The table of docs/protocol.md, *Lost keys*. It depends only on the answers of the platform. The history is the age of
 * the first suspicious answer, if there was one.
 *
 * | answer | history | canaries | verdict |
 * |---|---|---|---|
 * | works | | | intact |
 * | final | | | lost |
 * | temporary | | | unwell |
 * | suspicious | none | | suspected |
 * | suspicious | less than 2 s old | | suspected |
 * | suspicious | 2 s old | work | lost |
 * | suspicious | 2 s old | fail | unwell |
 */
internal object VerdictTable {
    const val DISTANCE_MILLIS = 2_000L

    /** @param remainingMillis the time until a second suspicious answer is believed; null if there was no first one */
    fun verdict(answer: PlatformAnswer, remainingMillis: Long?, canaries: Canaries = Canaries.NOT_ASKED): Verdict = when (answer) {
        PlatformAnswer.WORKS -> Verdict.Intact
        PlatformAnswer.FINAL -> Verdict.Lost
        PlatformAnswer.TEMPORARY -> Verdict.Unwell
        PlatformAnswer.SUSPICIOUS -> when {
            remainingMillis == null -> Verdict.Suspected(isFirst = true, DISTANCE_MILLIS)
            remainingMillis > 0 -> Verdict.Suspected(isFirst = false, remainingMillis)
            else -> when (canaries) {
                Canaries.NOT_ASKED -> Verdict.AskCanaries
                Canaries.WORK -> Verdict.Lost
                Canaries.FAIL -> Verdict.Unwell
            }
        }
    }
}
