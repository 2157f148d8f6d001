package ai.synheart.auth.identity

import ai.synheart.auth.Configuration
import ai.synheart.auth.HttpResponse
import ai.synheart.auth.HttpRequest
import ai.synheart.auth.HttpTransport
import ai.synheart.auth.OwnCode
import ai.synheart.auth.SynheartAuthException
import ai.synheart.auth.TransportException
import ai.synheart.auth.concurrency.withDeadline
import ai.synheart.auth.developmentHeader
import ai.synheart.auth.failure
import ai.synheart.auth.wire.FormException
import ai.synheart.auth.wire.JsonObject
import ai.synheart.auth.wire.RotationDemand
import ai.synheart.auth.wire.Route
import ai.synheart.auth.wire.USER_AGENT
import ai.synheart.auth.wire.error
import ai.synheart.auth.wire.naming
import ai.synheart.auth.wire.rotationDemand
import ai.synheart.auth.wire.serverTime
import kotlin.time.Duration
import kotlinx.coroutines.CancellationException

/**
 * Sends a request, and gives up at its deadline. Throws `NETWORK_ERROR` without an answer, `ANSWER_TOO_LARGE` for an answer over the
 * limit, and `SIGNING_FAILED` for a request that can never be sent, such as one with a malformed URL.
 */
internal suspend fun Configuration.exchange(request: HttpRequest, transport: HttpTransport = this.transport): HttpResponse = try {
    withDeadline(request.deadline, sleeper, HttpResponse::abandon) { transport.send(request) }
        ?: throw failure(OwnCode.NETWORK_ERROR, "no answer in time")
} catch (error: CancellationException) {
    throw error
} catch (error: SynheartAuthException) {
    throw error
} catch (error: TransportException) {
    val code = when {
        error.isUnsendable -> OwnCode.SIGNING_FAILED
        error.isTooLarge -> OwnCode.ANSWER_TOO_LARGE
        else -> OwnCode.NETWORK_ERROR
    }
    throw failure(code, error.message.orEmpty(), error)
} catch (error: Exception) {
    throw failure(OwnCode.NETWORK_ERROR, "the transport failed", error)
}

/** Calls the auth service: one request, one answer. */
internal class ServiceClient(private val configuration: Configuration) {
    /** A 2xx answer. */
    class Answer(
        private val body: ByteArray,
        /** The time at which the request was sent, on the clock that does not jump. */
        val sentAtMillis: Long,
        /** The service's clock in unix seconds, if the answer shows it. */
        val serverTime: Long?,
    ) {
        /** Parses the body. A body of another form does not come from the service. */
        fun <Value> read(parse: (JsonObject) -> Value): Value = try {
            parse(JsonObject.parse(body))
        } catch (error: FormException) {
            throw failure(OwnCode.NETWORK_ERROR, "the answer is not what the service sends", error)
        }
    }

    /** The result of an exchange, with the clock offset and the demand to rotate that the answer shows. A refusal can show both too. */
    class Outcome(val result: Result<Answer>, val offset: ClockOffset?, val rotationDemand: RotationDemand?)

    suspend fun exchange(route: Route, headers: List<Pair<String, String>>, body: ByteArray, deadline: Duration): Outcome {
        val lines = buildList {
            addAll(headers)
            if (body.isNotEmpty()) add("Content-Type" to "application/json")
            add("Accept" to "application/json")
            add("User-Agent" to USER_AGENT)
            developmentHeader(configuration.attestation)?.let(::add)
        }
        val sentAt = configuration.clock.elapsedMillis
        val answer = try {
            configuration.exchange(HttpRequest(route.method, configuration.baseUrl + route.path, lines, body, deadline))
        } catch (error: SynheartAuthException) {
            // The service's answers are small: a larger one is not the service's.
            val failure = if (error is SynheartAuthException.AnswerTooLarge) failure(OwnCode.NETWORK_ERROR, error.message.orEmpty(), error) else error
            return Outcome(Result.failure(failure), null, null)
        }
        val offset = answer.serverTime?.let {
            ClockOffset.of(it, configuration.clock.wallMillis, configuration.clock.elapsedMillis - sentAt)
        }
        val result = if (answer.status in 200..299) {
            Result.success(Answer(answer.body, sentAt, answer.serverTime))
        } else {
            Result.failure(answer.error().naming(configuration.origin))
        }
        return Outcome(result, offset, answer.rotationDemand)
    }
}
