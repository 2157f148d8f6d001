package ai.synheart.auth.flutter

import ai.synheart.auth.ResetReason
import ai.synheart.auth.RotationReason
import ai.synheart.auth.SignatureScheme
import kotlin.time.Duration.Companion.milliseconds
import org.junit.After
import org.junit.Assert.assertEquals
import org.junit.Assert.assertTrue
import org.junit.Test

/** Compares the plugin's Android half with `contract/channel.json`, message by message, through the codec. */
class PluginContractTest {
    private val client = FakeClient()
    private val engine = TestEngine(client)

    @After
    fun end() = engine.close()

    @Test
    fun `the plugin's contract equals the contract file`() {
        assertEquals(mapOf("calls" to Contract.CALLS, "states" to Contract.STATES), ContractFile.channels)
        assertEquals(ContractFile.methods.keys, Contract.calls.keys)
        for ((name, call) in Contract.calls) {
            assertEquals(name, ContractFile.arguments(name), call.arguments.fields.mapValues { describe(it.value) })
            assertEquals(name, ContractFile.result(name), call.result?.let(::describe))
        }
        assertEquals(ContractFile.events, describe(Contract.stateChange))
        assertEquals(ContractFile.details, describe(Contract.errorDetails))
        assertEquals(ContractFile.errors["malformed"], Contract.MALFORMED)
    }

    @Test
    fun `every method takes a message of the contract and answers in the contract's shape`() {
        for ((name, call) in Contract.calls) {
            val answer = engine.call(name, valid(call.arguments))
            assertTrue("$name: $answer", answer is Answer.Success)
            val value = (answer as Answer.Success).value
            call.result?.check(value, name) ?: assertEquals(name, null, value)
        }
        // The client got every call but `cancel`.
        assertEquals(Contract.calls.keys - "cancel", client.calls.map { it.first() }.toSet())
    }

    @Test
    fun `the client gets the arguments that Dart sent`() {
        val call = mapOf("call" to null, "appId" to "app")
        val signing = mapOf("method" to "POST", "body" to byteArrayOf(9), "scheme" to "two", "asserting" to true)
        engine.call(
            "configure",
            mapOf(
                "baseUrl" to "https://auth.example.com", "origins" to listOf("https://a"), "aliases" to listOf("https://b"),
                "scheme" to "two", "rotatesAutomatically" to false, "cloudProjectNumber" to 5, "androidProof" to "both", "developmentMode" to true,
            ),
        )
        engine.call("registerDevice", call + ("joins" to false))
        engine.call("sign", call + signing + ("url" to "https://a/b?c"))
        engine.call(
            "send",
            call + signing + mapOf(
                "url" to "https://a/b?c", "headers" to listOf(mapOf("name" to "A", "value" to "b")), "timeoutMs" to 1500,
                "maximumAnswer" to 7,
            ),
        )
        engine.call("deviceToken", call + ("audience" to "x"))
        engine.call("rotateKey", call + ("reason" to "compromise"))
        engine.call("resetDeviceIdentity", call + ("reason" to "key_lost"))
        engine.call("correctClockSkew", mapOf("serverTimestamp" to 1.5, "appId" to null))
        assertEquals(
            listOf(
                listOf("configure", "https://auth.example.com", setOf("https://a"), setOf("https://b"), SignatureScheme.TWO, false, 5L, "both", true),
                listOf("registerDevice", "app", false),
                listOf("sign", "app", "POST", "https://a/b?c", listOf<Byte>(9), SignatureScheme.TWO),
                listOf(
                    "send", "app", "POST", "https://a/b?c", listOf("A" to "b"), listOf<Byte>(9), 1500.milliseconds, 7,
                    SignatureScheme.TWO,
                ),
                listOf("deviceToken", "app", "x"),
                listOf("rotateKey", "app", RotationReason.COMPROMISE),
                listOf("resetDeviceIdentity", "app", ResetReason.KEY_LOST),
                listOf("correctClockSkew", 1.5, null),
            ),
            client.calls.toList(),
        )
    }

    @Test
    fun `an absent field, an unknown field, another type and a value beyond its limit are refused`() {
        var cases = 0
        for ((name, call) in Contract.calls) {
            for (broken in brokenForms(call.arguments)) {
                val answer = engine.call(name, broken.value)
                assertTrue("$name, ${broken.why}: $answer", answer is Answer.Failure)
                val failure = answer as Answer.Failure
                assertEquals("$name, ${broken.why}", Contract.MALFORMED, failure.code)
                assertTrue("$name, ${broken.why}: ${failure.message}", broken.place in failure.message.orEmpty())
                cases += 1
            }
        }
        assertTrue("$cases cases", cases > 300)
        assertEquals("the client got none of them", 0, client.calls.size)
    }

    @Test
    fun `an unknown method is not implemented`() {
        assertEquals(Answer.NotImplemented, engine.call("unknown", null))
        assertEquals(Answer.NotImplemented, engine.call("unknown", null, Contract.STATES))
    }

    /** A value that fits the shape, the description of its type. */
    private fun valid(shape: Shape): Any? = if (shape.nullable) null else when (shape) {
        is Shape.Text -> "x"
        is Shape.Bytes -> byteArrayOf(1)
        is Shape.Integer -> shape.range.last
        is Shape.Number -> 1.5
        is Shape.Flag -> true
        is Shape.Choice -> shape.values.last()
        is Shape.Items -> listOf(valid(shape.item))
        is Shape.Message -> shape.fields.mapValues { valid(it.value) }
    }

    private class Broken(val why: String, val place: String, val value: Any?)

    /** For each place in the shape, values that do not fit there. */
    private fun brokenForms(shape: Shape, place: String = ""): List<Broken> {
        fun broken(why: String, value: Any?) = Broken("$place $why", place, value)
        val others = listOf(null, true, 1, 1.5, "text", byteArrayOf(1), listOf(1, 2), mapOf("a" to 1))
            .filterNot { fits(shape, it) }.map { broken("as ${it?.javaClass?.simpleName}", it) }
        return others + when (shape) {
            is Shape.Text -> listOf(broken("too long", "x".repeat(shape.max + 1)))
            is Shape.Bytes -> listOf(broken("too long", ByteArray(shape.max + 1)))
            is Shape.Integer -> listOf(broken("too small", shape.range.first - 1), broken("too large", shape.range.last + 1))
            is Shape.Number -> listOf(broken("not finite", Double.NaN), broken("not finite", Double.POSITIVE_INFINITY))
            is Shape.Flag -> emptyList()
            is Shape.Choice -> listOf(broken("unknown", "unknown"))
            is Shape.Items ->
                listOf(broken("too long", List(shape.max + 1) { valid(shape.item) })) +
                    brokenForms(shape.item, "$place[1]").map { Broken(it.why, it.place, listOf(valid(shape.item), it.value)) }
            is Shape.Message -> {
                val whole = fields(shape.fields.mapValues { valid(it.value) })
                listOf(broken("with an unknown field", whole + ("unknown" to 1)), broken("with another key", whole + mapOf(1 to 1))) +
                    whole.keys.map { Broken("$place without $it", it, whole - it) } +
                    shape.fields.flatMap { (name, field) ->
                        brokenForms(field, "$place.$name").map { Broken(it.why, it.place, whole + (name to it.value)) }
                    }
            }
        }
    }

    private fun fits(shape: Shape, value: Any?): Boolean = when (value) {
        null -> shape.nullable
        is String -> shape is Shape.Text
        is Boolean -> shape is Shape.Flag
        is Int -> shape is Shape.Integer
        is Double -> shape is Shape.Number
        is ByteArray -> shape is Shape.Bytes
        else -> false
    }
}
