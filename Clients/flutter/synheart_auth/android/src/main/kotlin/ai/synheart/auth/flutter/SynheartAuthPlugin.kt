package ai.synheart.auth.flutter

import ai.synheart.auth.HttpRequest
import ai.synheart.auth.Recovery
import ai.synheart.auth.ResetReason
import ai.synheart.auth.RotationReason
import ai.synheart.auth.SignatureScheme
import ai.synheart.auth.StateChange
import ai.synheart.auth.SynheartAuthException
import android.content.Context
import android.os.Handler
import android.os.Looper
import io.flutter.embedding.engine.plugins.FlutterPlugin
import io.flutter.plugin.common.EventChannel
import io.flutter.plugin.common.MethodCall
import io.flutter.plugin.common.MethodChannel
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.Executor
import kotlin.coroutines.cancellation.CancellationException
import kotlin.time.Duration.Companion.milliseconds
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.cancel
import kotlinx.coroutines.launch

/** The Android half of the Flutter plugin: the contract's calls, on the Kotlin client. */
public class SynheartAuthPlugin internal constructor(
    private val main: Executor,
    private val configured: Configured,
    private val client: (Context) -> AuthClient,
) : FlutterPlugin, MethodChannel.MethodCallHandler, EventChannel.StreamHandler {
    /** The plugin that Flutter makes. */
    public constructor() : this(mainThread(), Configured.process, ::androidClient)

    /** The plugin's state while it is attached to an engine. */
    private class Attachment(
        val client: AuthClient,
        val calls: MethodChannel,
        val states: EventChannel,
        // Not `Dispatchers.Default`, because it has few threads and the app may block all of them.
        val scope: CoroutineScope = CoroutineScope(SupervisorJob() + Dispatchers.IO.limitedParallelism(CALLS_AT_ONCE)),
        val running: ConcurrentHashMap<Long, Job> = ConcurrentHashMap(),
    )

    // The next two are used on the main thread only.
    private var attachment: Attachment? = null
    private var listening: Job? = null

    override fun onAttachedToEngine(binding: FlutterPlugin.FlutterPluginBinding) {
        val messenger = binding.binaryMessenger
        val attachment = Attachment(
            client(binding.applicationContext),
            MethodChannel(messenger, Contract.CALLS),
            EventChannel(messenger, Contract.STATES),
        )
        attachment.calls.setMethodCallHandler(this)
        attachment.states.setStreamHandler(this)
        this.attachment = attachment
    }

    /** Cancels the calls of this engine, which gets no reply. The client's operations, such as a registration, continue. */
    override fun onDetachedFromEngine(binding: FlutterPlugin.FlutterPluginBinding) {
        val attachment = attachment ?: return
        this.attachment = null
        attachment.calls.setMethodCallHandler(null)
        attachment.states.setStreamHandler(null)
        attachment.scope.cancel()
        listening = null
    }

    override fun onMethodCall(call: MethodCall, result: MethodChannel.Result) {
        val attachment = attachment ?: return
        val method = Contract.calls[call.method] ?: return result.notImplemented()
        val fields = try {
            Fields(method.arguments, call.arguments, call.method)
        } catch (error: MalformedMessage) {
            return result.error(Contract.MALFORMED, error.message, null)
        }
        if (call.method == "cancel") {
            attachment.running[fields.integer("call")]?.cancel()
            return result.success(null)
        }
        val id = if ("call" in method.arguments.fields) fields.optionalInteger("call") else null
        // The reply if the call is cancelled before it begins.
        var reply = CANCELLED
        val job = attachment.scope.launch(start = CoroutineStart.LAZY) {
            reply = reply(attachment.client, call.method, method, fields)
        }
        if (id != null && attachment.running.putIfAbsent(id, job) != null) {
            job.cancel()
            return result.error(Contract.MALFORMED, "${call.method}.call: another call has this id", null)
        }
        job.invokeOnCompletion {
            if (id != null) attachment.running.remove(id, job)
            // A detached engine accepts no reply.
            main.execute { if (this.attachment === attachment) reply(result) }
        }
        job.start()
    }

    override fun onListen(arguments: Any?, events: EventChannel.EventSink) {
        val attachment = attachment ?: return
        listening?.cancel()
        // Undispatched: the subscription must exist before Dart's listen returns.
        listening = attachment.scope.launch(start = CoroutineStart.UNDISPATCHED) {
            attachment.client.stateChanges.collect { change ->
                main.execute { events.success(message(change)) }
            }
        }
    }

    override fun onCancel(arguments: Any?) {
        listening?.cancel()
        listening = null
    }

    /** Makes the call. Returns the reply to Dart. */
    private suspend fun reply(client: AuthClient, name: String, method: Call, fields: Fields): Reply =
        try {
            val value = call(client, name, fields).takeIf { method.result != null }
            method.result?.let { unfit(name, it, value) } ?: Reply { it.success(value) }
        } catch (_: CancellationException) {
            CANCELLED
        } catch (error: ConfiguredOtherwise) {
            failure("NOT_CONFIGURED", error.message)
        } catch (error: SynheartAuthException) {
            failure(error)
        } catch (error: MalformedMessage) {
            Reply { it.error(Contract.MALFORMED, error.message, null) }
        } catch (error: Throwable) {
            // For example, a large answer does not fit into memory. An uncaught error would end the app's process.
            val message = "unexpected: ${error.javaClass.name}"
            failure(SynheartAuthException.fromCode("CRYPTO_ERROR", message), mayHaveHappened = name == "send")
        }

    /** The reply in place of a result that does not fit the channel; null if it fits. */
    private fun unfit(name: String, shape: Shape, value: Any?): Reply? = try {
        shape.check(value, name)
        null
    } catch (error: MalformedMessage) {
        // Only the result of `send` is another server's answer, which may have any size. The plugin itself makes all other
        // results. So if another result does not fit the channel, the plugin has a bug.
        if (name != "send") throw error
        val tooLarge = SynheartAuthException.fromCode("ANSWER_TOO_LARGE", "the answer does not fit the channel: ${error.message}")
        // The server has answered, so the request may have taken effect.
        failure(tooLarge, mayHaveHappened = true)
    }

    private suspend fun call(client: AuthClient, name: String, fields: Fields): Any? = when (name) {
        "configure" -> settings(fields).let { settings -> configured.once(settings) { client.configure(settings) } }
        "isRegistered" -> client.isRegistered(fields.text("appId"))
        "registerDevice" -> client.registerDevice(fields.text("appId"), fields.flag("joins")).let {
            mapOf("status" to it.status.wire, "deviceId" to it.deviceId)
        }
        "getDeviceId" -> client.getDeviceId(fields.text("appId"))
        "getState" -> client.state(fields.text("appId")).wire
        "signRequest" -> headers(
            client.signRequest(
                fields.text("appId"), fields.text("method"), fields.text("path"), fields.bytes("body"), scheme(fields),
            ).toList(),
        )
        // Assertions are Apple's: "asserting" has no effect here.
        "sign" -> headers(
            client.sign(
                fields.text("appId"), fields.text("method"), fields.text("url"), fields.bytes("body"), scheme(fields),
            ).toList(),
        )
        "send" -> client.send(fields.text("appId"), request(fields), scheme(fields)).let {
            mapOf("status" to it.status, "headers" to headers(it.headers), "body" to it.body)
        }
        "deviceToken" -> client.deviceToken(fields.text("appId"), fields.optionalText("audience")).let {
            mapOf("token" to it.token, "remainingMs" to it.remaining.inWholeMilliseconds.coerceAtLeast(0))
        }
        "rotateKey" -> {
            val reason = RotationReason.entries.first { it.wire == fields.text("reason") }
            client.rotateKey(fields.text("appId"), reason).let {
                mapOf("deviceId" to it.deviceId, "effectiveAt" to it.effectiveAt)
            }
        }
        "resetDeviceIdentity" -> client.resetDeviceIdentity(
            fields.text("appId"), ResetReason.entries.first { it.wire == fields.text("reason") },
        )
        "maintain" -> client.maintain(fields.text("appId"))
        "correctClockSkew" -> client.correctClockSkew(fields.number("serverTimestamp"), fields.optionalText("appId"))
        else -> throw MalformedMessage("$name: the plugin does not make this call")
    }

    private fun settings(fields: Fields) = Settings(
        baseUrl = fields.text("baseUrl"),
        origins = fields.texts("origins").toSet(),
        aliases = fields.texts("aliases").toSet(),
        scheme = scheme(fields) ?: SignatureScheme.ONE,
        rotatesAutomatically = fields.flag("rotatesAutomatically"),
        cloudProjectNumber = fields.optionalInteger("cloudProjectNumber"),
        androidProof = fields.text("androidProof"),
        developmentMode = fields.flag("developmentMode"),
    )

    private fun request(fields: Fields) = HttpRequest(
        method = fields.text("method"),
        url = fields.text("url"),
        headers = fields.messages("headers").map { it.text("name") to it.text("value") },
        body = fields.bytes("body"),
        deadline = fields.integer("timeoutMs").milliseconds,
        maximumAnswer = fields.integer("maximumAnswer").toInt(),
    )

    private fun scheme(fields: Fields): SignatureScheme? =
        fields.optionalText("scheme")?.let { if (it == "one") SignatureScheme.ONE else SignatureScheme.TWO }

    private fun headers(lines: List<Pair<String, String>>) =
        lines.map { (name, value) -> mapOf("name" to name, "value" to value) }

    private fun message(change: StateChange) =
        mapOf("appId" to change.appId, "from" to change.from.wire, "to" to change.to.wire)
}

/** The largest number of threads for calls. Further calls wait for a thread; a suspended call takes none. */
private const val CALLS_AT_ONCE = 16

/** A reply to Dart, sent once, on the main thread. */
private fun interface Reply {
    operator fun invoke(result: MethodChannel.Result)
}

private fun failure(error: SynheartAuthException, mayHaveHappened: Boolean = error.mayHaveHappened): Reply {
    val transition = error as? SynheartAuthException.InvalidStateTransition
    val details = mapOf(
        "recovery" to error.recovery.wire,
        "retryAfterMs" to error.retryAfter?.inWholeMilliseconds,
        "fromService" to (error is SynheartAuthException.ServerError),
        "mayHaveHappened" to mayHaveHappened,
        "from" to transition?.from?.wire,
        "to" to transition?.to?.wire,
    )
    return Reply { it.error(error.code, error.message, details) }
}

/** An error of the plugin itself: nothing was sent, and no retry helps. */
private fun failure(code: String, message: String): Reply {
    val details = mapOf(
        "recovery" to Recovery.NONE.wire, "retryAfterMs" to null, "fromService" to false, "mayHaveHappened" to false, "from" to null,
        "to" to null,
    )
    return Reply { it.error(code, message, details) }
}

// Dart ignores this reply: its call has already ended with an error, in which `mayHaveHappened` is true for a `send`.
private val CANCELLED = failure(Contract.CANCELLED, "the caller cancelled")

/** The main thread, on which Flutter accepts replies and events. */
private fun mainThread(): Executor {
    val handler = Handler(Looper.getMainLooper())
    return Executor { handler.post(it) }
}
