package ai.synheart.auth.okhttp

import ai.synheart.auth.HttpRequest
import ai.synheart.auth.SignatureScheme
import ai.synheart.auth.SynheartAuth
import ai.synheart.auth.SynheartAuthException
import ai.synheart.auth.JvmTransport
import ai.synheart.auth.TestPhone
import ai.synheart.auth.refusal
import java.io.IOException
import java.io.InterruptedIOException
import java.util.concurrent.CopyOnWriteArrayList
import kotlin.concurrent.thread
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.runBlocking
import okhttp3.Call
import okhttp3.Headers
import okhttp3.HttpUrl
import okhttp3.Interceptor
import okhttp3.Network
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import okhttp3.Response
import okio.Buffer
import org.junit.Assert.assertEquals
import org.junit.Assert.assertSame
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Test

/** The interceptor in a chain that sends to the real service. */
class InterceptorTest {
    /** The rest of the chain after the interceptor. */
    private class Chain(private val request: Request, private val first: (Request) -> Response? = { null }) : Interceptor.Chain {
        val sent = CopyOnWriteArrayList<Request>()
        val answers = mutableListOf<Response>()

        override fun request() = request
        override fun call() = object : Call {
            override fun execute() = error("under way")
            override fun cancel() = Unit
            override fun isCanceled() = false
        }

        override fun proceed(request: Request): Response {
            assertTrue("an earlier answer is open", answers.all { it.isClosed })
            sent.add(request)
            val response = (if (sent.size == 1) first(request) else null) ?: runBlocking {
                val bytes = request.body?.let { body -> Buffer().also(body::writeTo).readByteArray() } ?: ByteArray(0)
                val lines = List(request.headers.size) { request.headers.name(it) to request.headers.value(it) }
                val answer = JvmTransport().send(HttpRequest(request.method, request.url.toString(), lines, bytes))
                Response(request, answer.status, headers(answer.headers), answer.body)
            }
            return response.also(answers::add)
        }
    }

    /** Makes a client of the simulated phone that signs under the given scheme. */
    private lateinit var client: (SignatureScheme) -> SynheartAuth

    private fun test(body: (auth: SynheartAuth, appId: String, url: String) -> Unit) = TestPhone().use { phone ->
        val appId = phone.service.newApp(phone.record())
        val auth = phone.client()
        client = { SynheartAuth(phone.configuration(scheme = it)) }
        runBlocking { auth.registerDevice(appId) }
        body(auth, appId, phone.service.publicUrl)
    }

    private fun request(url: String, method: String = "GET", body: ByteArray? = null) =
        Request(HttpUrl(url), method, headers(listOf("X-Own" to "1", "Content-Type" to "application/json")), body?.toRequestBody())

    @Test
    fun `a request is signed under both schemes`() = test { auth, appId, url ->
        for (scheme in SignatureScheme.entries) {
            val chain = Chain(request("$url/auth/v1/device/status"))
            val response = interceptor(client(scheme), appId, scheme).intercept(chain)
            assertEquals(200, response.code)
            assertSame(chain.answers.single(), response)
            assertTrue(!response.isClosed)
            assertEquals("X-Own", chain.sent.single().headers.name(0))
        }
        val chain = Chain(request("$url/auth/v1/token", "POST", "{}".toByteArray()))
        assertEquals(200, interceptor(auth, appId).intercept(chain).code)
    }

    @Test
    fun `the call recovers from a refusal`() = test { auth, appId, url ->
        val refused = refusal(409, "NONCE_REPLAY")
        val chain = Chain(request("$url/auth/v1/device/status")) { Response(it, refused.status, headers(refused.headers), refused.body) }
        assertEquals(200, interceptor(auth, appId).intercept(chain).code)
        assertEquals(2, chain.sent.size)
        assertEquals(listOf(true, false), chain.answers.map { it.isClosed })
    }

    @Test
    fun `OkHttp's errors are thrown unchanged, and the client's errors as IOException`() = test { auth, appId, url ->
        val lost = IOException("lost")
        assertSame(lost, assertThrows(IOException::class.java) {
            interceptor(auth, appId).intercept(Chain(request("$url/auth/v1/device/status")) { throw lost })
        })
        val error = assertThrows(SynheartAuthIOException::class.java) {
            interceptor(auth, appId).intercept(Chain(request("https://elsewhere.example/")))
        }
        assertTrue(error.error is SynheartAuthException.SigningFailed)
    }

    @Test
    fun `a signed request follows no redirect, even if the app allows redirects`() = test { auth, appId, url ->
        for (follows in listOf(false, true)) {
            val asked = mutableListOf<String>()
            val client = OkHttpClient.Builder().addSynheartAuth(auth, appId).followRedirects(follows).answer { request ->
                asked.add(request.url.toString())
                Response(request, 302, headers(listOf("Location" to "https://elsewhere.example/")), ByteArray(0))
            }
            val call = client.newCall(request("$url/auth/v1/device/status"))
            if (follows) assertThrows(IOException::class.java) { call.execute() } else assertEquals(302, call.execute().code)
            assertEquals(listOf("$url/auth/v1/device/status"), asked)
        }
        // Unsigned requests do follow redirects.
        val plain = OkHttpClient.Builder().addNetworkInterceptor(OnceGuard).answer { request ->
            if ("elsewhere" in request.url.toString()) Response(request, 200, headers(emptyList()), ByteArray(0))
            else Response(request, 302, headers(listOf("Location" to "https://elsewhere.example/")), ByteArray(0))
        }
        assertEquals(200, plain.newCall(request("$url/")).execute().code)
    }

    private fun OkHttpClient.Builder.answer(answer: (Request) -> Response): OkHttpClient = apply {
        network = object : Network {
            override fun connect(call: Call) = object : Network.Connection {
                override val hasAnotherRoute = false
                override fun exchange(request: Request) = answer(request)
            }
        }
    }.build()

    @Test
    fun `an interrupted thread ends the call as OkHttp expects`() = test { auth, appId, url ->
        val chain = Chain(request("$url/auth/v1/device/status")) {
            Thread.sleep(60_000)
            throw IOException("not interrupted")
        }
        var failure: Throwable? = null
        val caller = thread {
            failure = assertThrows(IOException::class.java) { interceptor(auth, appId).intercept(chain) }
        }
        while (chain.sent.isEmpty()) Thread.onSpinWait()
        caller.interrupt()
        caller.join()
        assertTrue("$failure", failure is InterruptedIOException)
    }

    private fun interceptor(auth: SynheartAuth, appId: String, scheme: SignatureScheme? = null) =
        SynheartAuthInterceptor(auth, appId, scheme, 30.seconds)
}

private fun headers(lines: List<Pair<String, String>>): Headers =
    Headers.Builder().apply { for ((name, value) in lines) add(name, value) }.build()
