package ai.synheart.auth.flutter

import java.io.File
import java.util.LinkedHashMap

/** `contract/channel.json`, read as maps, lists, texts, numbers, booleans and null. */
internal object ContractFile {
    private val root = fields(Json(File(System.getProperty("synheart.contract")).readText()).read())

    val channels = fields(root["channels"])
    val methods = fields(root["methods"])
    val errors = fields(root["errors"])
    val codes = (errors["codes"] as List<*>).map { fields(it) }
    val events = shape(root["events"])
    val details = shape(errors["details"])

    fun arguments(method: String): Map<String, Any?> =
        fields(fields(methods[method])["arguments"]).mapValues { shape(it.value) }

    fun result(method: String): Map<String, Any?>? = fields(methods[method])["result"]?.let(::shape)

    /** A shape with the names of enums and messages resolved. */
    private fun shape(value: Any?): Map<String, Any?> {
        val shape = LinkedHashMap(fields(value))
        when (shape["type"]) {
            "enum" -> shape["of"] = fields(root["enums"])[shape["of"]]
            "message" -> {
                val named = fields(fields(root["messages"])[shape["of"]])
                shape["of"] = named.mapValues { shape(it.value) }
            }
            "list" -> shape["of"] = shape(shape["of"])
        }
        shape.putIfAbsent("nullable", false)
        return shape
    }
}

@Suppress("UNCHECKED_CAST")
internal fun fields(value: Any?): Map<String, Any?> = value as Map<String, Any?>

/** A shape of the plugin, in the form of the contract file. */
internal fun describe(shape: Shape): Map<String, Any?> = when (shape) {
    is Shape.Text -> mapOf("type" to "string", "max" to shape.max.toLong())
    is Shape.Bytes -> mapOf("type" to "bytes", "max" to shape.max.toLong())
    is Shape.Integer -> mapOf("type" to "integer", "min" to shape.range.first, "max" to shape.range.last)
    is Shape.Number -> mapOf("type" to "number")
    is Shape.Flag -> mapOf("type" to "boolean")
    is Shape.Choice -> mapOf("type" to "enum", "of" to shape.values)
    is Shape.Items -> mapOf("type" to "list", "of" to describe(shape.item), "max" to shape.max.toLong())
    is Shape.Message -> mapOf("type" to "message", "of" to shape.fields.mapValues { describe(it.value) })
} + ("nullable" to shape.nullable)

/** Reads JSON that is known to be well-formed. */
private class Json(private val text: String) {
    private var at = 0

    fun read(): Any? {
        space()
        return when (text[at]) {
            '{' -> sequence('}') { Pair(read() as String, colon().let { read() }) }.toMap()
            '[' -> sequence(']') { read() }
            '"' -> text.substring(at + 1, text.indexOf('"', at + 1)).also { at += it.length + 2 }
            't' -> true.also { at += 4 }
            'f' -> false.also { at += 5 }
            'n' -> null.also { at += 4 }
            else -> text.substring(at).takeWhile { it == '-' || it.isDigit() }.also { at += it.length }.toLong()
        }
    }

    private fun <T> sequence(end: Char, item: () -> T): List<T> {
        val items = mutableListOf<T>()
        at += 1
        space()
        while (text[at] != end) {
            items += item()
            space()
            if (text[at] == ',') at += 1
            space()
        }
        at += 1
        return items
    }

    private fun colon() {
        space()
        at += 1
    }

    private fun space() {
        while (text[at].isWhitespace()) at += 1
    }
}
