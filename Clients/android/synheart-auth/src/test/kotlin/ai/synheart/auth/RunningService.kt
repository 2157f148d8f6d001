package ai.synheart.auth

import ai.synheart.auth.wire.JsonNumber
import ai.synheart.auth.wire.JsonObject
import ai.synheart.auth.wire.base64
import java.io.File
import java.net.HttpURLConnection
import java.net.URL
import java.nio.file.Files
import java.nio.file.StandardCopyOption
import java.util.UUID
import java.util.concurrent.TimeUnit
import kotlin.time.Duration

/**
 * The real service in a process of its own, with an administrator's credential.
 *
 * @param movesItsClock whether [moveClock] works. Debian's libfaketime tells the process another time of day.
 */
internal class RunningService(vararg environment: Pair<String, String>, movesItsClock: Boolean = false) : AutoCloseable {
    private val folder = Files.createTempDirectory("synheart-auth-service").toFile()
    private val clock = File(folder, "clock")
    private val database = File(folder, "db.sqlite").path
    private val process: Process
    val publicUrl: String
    private val operationsUrl: String
    private val credential: String

    init {
        credential = (ai.synheart.auth.wire.parseJson(
            run("credentials", "create", "--name", "test", "--role", "admin", "--days", "3650", "--database", database, "--json").toByteArray(),
        ) as JsonObject).string("credential")
        // libfaketime changes the environment when it is loaded. In the service, Swift would then not find its arguments. So
        // `env` loads it first.
        process = ProcessBuilder("/usr/bin/env", BINARY, "serve", "--database", database, "--port", "0", "--operations-port", "0")
            .redirectError(File(folder, "log"))
            .apply {
                environment() += mapOf(
                    "SYNHEART_AUTH_PROTECTION_ENROLMENT_BURST" to "100000", "SYNHEART_AUTH_PROTECTION_ENROLMENT_PER_MINUTE" to "10000",
                    "SYNHEART_AUTH_PROTECTION_ROTATION_BURST" to "10000", "SYNHEART_AUTH_PROTECTION_DEVICE_BURST" to "10000",
                    "SYNHEART_AUTH_PROTECTION_FAILED_SIGNATURE_BURST" to "10000",
                    "SYNHEART_AUTH_PROTECTION_STRANGER_BURST" to "10000",
                ) + environment
                if (movesItsClock) {
                    clock.writeText("+0")
                    environment() += mapOf(
                        "LD_PRELOAD" to FAKETIME, "FAKETIME_TIMESTAMP_FILE" to clock.path, "FAKETIME_NO_CACHE" to "1",
                        "FAKETIME_DONT_FAKE_MONOTONIC" to "1",
                    )
                }
            }.start()
        val ready = process.inputStream.bufferedReader().readLine().orEmpty().split(" ")
        check(ready.size == 3 && ready[0] == "ready") { "the service did not start: ${File(folder, "log").readText()}" }
        publicUrl = ready[1].removePrefix("public=")
        operationsUrl = ready[2].removePrefix("operations=")
        Runtime.getRuntime().addShutdownHook(Thread(::close))
    }

    private fun run(vararg arguments: String): String {
        val process = ProcessBuilder(BINARY, *arguments).redirectError(ProcessBuilder.Redirect.INHERIT).start()
        return process.inputStream.bufferedReader().readText().also { check(process.waitFor() == 0) { "$it" } }
    }

    /** Calls the admin API. */
    fun administer(method: String, path: String, body: Any? = null): JsonObject {
        val connection = URL("$operationsUrl/admin/v1/$path").openConnection() as HttpURLConnection
        connection.requestMethod = method
        connection.setRequestProperty("Authorization", "Bearer $credential")
        connection.setRequestProperty("Content-Type", "application/json")
        if (body != null) {
            connection.doOutput = true
            connection.outputStream.use { it.write(json(body).toByteArray()) }
        }
        val status = connection.responseCode
        val answer = (if (status >= 400) connection.errorStream else connection.inputStream)?.readBytes() ?: ByteArray(0)
        check(status in 200..299) { "$method $path: $status ${String(answer)}" }
        return if (answer.isEmpty()) JsonObject(emptyMap()) else JsonObject.parse(answer)
    }

    /** Adds an app, and returns its id. */
    fun newApp(record: Map<String, Any?>): String {
        val appId = "com.example.${UUID.randomUUID()}"
        administer("POST", "apps", record + ("app_id" to appId))
        return appId
    }

    fun changeApp(appId: String, edit: (Map<String, Any?>) -> Map<String, Any?>) {
        val record = administer("GET", "apps/$appId")
        @Suppress("UNCHECKED_CAST")
        val plain = plain((record.optionalObject("app") ?: record)) as Map<String, Any?>
        administer("PUT", "apps/$appId", edit(plain))
    }

    fun devices(appId: String): List<JsonObject> = administer("GET", "devices?app_id=$appId").array("devices").map { it as JsonObject }

    /** Changes a device. [what] is `revoke`, `approve`, `reject` or `force-rotation`. */
    fun device(appId: String, deviceId: String, what: String, body: Map<String, Any?> = emptyMap()) {
        administer("POST", "apps/$appId/devices/$deviceId/$what", body)
    }

    /** A credential for backends of one app. */
    fun backendCredential(appId: String): String =
        administer("POST", "credentials", mapOf("name" to "backend-$appId", "role" to "service", "apps" to listOf(appId), "expires_in_seconds" to 31_536_000))
            .string("credential")

    /** Sets the service's clock ahead of the system's by this offset. */
    fun moveClock(offset: Duration) {
        val next = File(folder, "clock.next")
        next.writeText("+${offset.inWholeSeconds}")
        Files.move(next.toPath(), clock.toPath(), StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING)
    }

    /** Asks the service to verify a request to a backend. */
    suspend fun verify(request: HttpRequest, credential: String): HttpResponse {
        val (scheme, rest) = request.url.split("://", limit = 2)
        val target = "/" + rest.substringAfter("/", "")
        val body = json(
            mapOf(
                "method" to request.method, "scheme" to scheme, "authority" to rest.substringBefore("/"),
                "path" to target.substringBefore("?"), "query" to if ("?" in target) target.substringAfter("?") else null,
                "headers" to request.headers.map { listOf(it.first, it.second) }, "body" to request.body.base64(),
            ),
        )
        return UrlConnectionTransport().send(
            HttpRequest(
                "POST", "$publicUrl/auth/v1/verify",
                listOf("Authorization" to "Bearer $credential", "Content-Type" to "application/json"), body.toByteArray(),
            ),
        )
    }

    fun stop() {
        process.destroy()
        process.waitFor(20, TimeUnit.SECONDS)
    }

    override fun close() {
        process.destroyForcibly().waitFor()
        folder.deleteRecursively()
    }

    companion object {
        private val BINARY: String = System.getProperty("synheart.binary")
        private val FAKETIME: String by lazy {
            val found = listOf("x86_64", "aarch64").map { "/usr/lib/$it-linux-gnu/faketime/libfaketimeMT.so.1" }.firstOrNull { File(it).exists() }
            checkNotNull(found) { "libfaketime is not installed: run scripts/prepare libfaketime" }
        }

        /** One service for all tests without special settings. */
        val shared: RunningService by lazy { RunningService() }
    }
}

/** Writes JSON of maps, lists, texts, numbers, booleans and null. */
internal fun json(value: Any?): String = when (value) {
    null -> "null"
    is Map<*, *> -> value.entries.joinToString(",", "{", "}") { json(it.key) + ":" + json(it.value) }
    is Collection<*> -> value.joinToString(",", "[", "]") { json(it) }
    is String -> buildString {
        append('"')
        for (c in value) if (c < ' ' || c == '"' || c == '\\') append("\\u%04x".format(c.code)) else append(c)
        append('"')
    }
    else -> value.toString()
}

/** Converts a parsed JSON value to plain maps, lists and numbers. */
internal fun plain(value: Any?): Any? = when (value) {
    is JsonObject -> value.members.mapValues { plain(it.value) }
    is List<*> -> value.map(::plain)
    is JsonNumber -> value.digits.toLong()
    else -> value
}
