package ai.synheart.auth.android

import ai.synheart.auth.DevelopmentAttestation
import ai.synheart.auth.HttpRequest
import ai.synheart.auth.ResetReason
import ai.synheart.auth.RotationReason
import ai.synheart.auth.SynheartAuth
import ai.synheart.auth.SynheartAuthException
import ai.synheart.auth.json
import ai.synheart.auth.wire.JsonObject
import ai.synheart.auth.wire.parseJson
import ai.synheart.standins.StandInDevice
import java.nio.file.Path
import kotlin.system.exitProcess
import kotlinx.coroutines.runBlocking

/**
 * The client as `synheart-auth conformance client` starts it, on stand-ins for Android: does the steps of CONFORMANCE_STEPS, and
 * prints the result of each. It is a debug build in development mode, with the transport of real apps.
 */
object ConformanceClient {
    private val url = variable("CONFORMANCE_URL")
    private val appId = variable("CONFORMANCE_APP")
    private val client = SynheartAuth.create(
        StandInDevice.start(Path.of(variable("CONFORMANCE_STATE"))).context(),
        AndroidConfiguration(url, attestation = DevelopmentAttestation, logger = {}),
    )

    @JvmStatic
    fun main(arguments: Array<String>) {
        for (step in parseJson(variable("CONFORMANCE_STEPS").toByteArray()) as List<*>) {
            println(json(runBlocking { result(step as JsonObject) }))
        }
        // Background work of the client would keep the process alive.
        exitProcess(0)
    }

    private fun variable(name: String): String = checkNotNull(System.getenv(name)) { "$name is not set" }

    private suspend fun result(step: JsonObject): Map<String, Any?> = try {
        perform(step)?.let { mapOf("ok" to true) + it } ?: mapOf("unsupported" to true)
    } catch (error: SynheartAuthException) {
        mapOf("ok" to false, "error" to error.code)
    }

    /** Does a step. Returns the result's members besides `ok`; null if the step is unknown. */
    private suspend fun perform(step: JsonObject): Map<String, Any?>? {
        when (step.string("do")) {
            "register" -> return mapOf("device_id" to client.registerDevice(appId).deviceId)
            "send" -> return mapOf("status" to client.send(appId, request(step)).status)
            "token" -> client.deviceToken(appId)
            "rotate" -> client.rotateKey(appId, RotationReason.valueOf(step.string("reason").uppercase()))
            "maintain" -> client.maintain(appId)
            "reset" -> client.resetDeviceIdentity(appId, ResetReason.USER_REQUESTED)
            else -> return null
        }
        return emptyMap()
    }

    private fun request(step: JsonObject): HttpRequest {
        val headers = checkNotNull(step.optionalObject("headers")).members.map { (name, value) -> name to value as String }
        return HttpRequest(step.string("method"), url + step.string("target"), headers, step.string("body").toByteArray())
    }
}
