package ai.synheart.auth.wire

import java.nio.ByteBuffer
import java.nio.charset.CharacterCodingException

/** A number as it was written. The caller checks its range. */
internal data class JsonNumber(val digits: String)

/** The members of a JSON object. A member that is `null` is read as absent. Every getter throws [FormException] for another type. */
internal class JsonObject(val members: Map<String, Any?>) {
    fun string(name: String): String = optionalString(name) ?: throw FormException("$name is missing")

    fun optionalString(name: String): String? = optional(name)

    fun long(name: String): Long = optionalLong(name) ?: throw FormException("$name is missing")

    /** An integer without fraction and exponent. */
    fun optionalLong(name: String): Long? =
        optional<JsonNumber>(name)?.let { it.digits.toLongOrNull() ?: throw FormException("$name is not an integer") }

    fun boolean(name: String): Boolean = optionalBoolean(name) ?: throw FormException("$name is missing")

    fun optionalBoolean(name: String): Boolean? = optional(name)

    fun optionalObject(name: String): JsonObject? = optional(name)

    fun array(name: String): List<Any?> = optional<List<Any?>>(name) ?: throw FormException("$name is missing")

    /** The value whose wire name is the text of the member [name]. */
    inline fun <Value> choice(name: String, values: Iterable<Value>, wire: (Value) -> String): Value {
        val text = string(name)
        return values.find { wire(it) == text } ?: throw FormException("$name has an unknown value")
    }

    private inline fun <reified Value> optional(name: String): Value? {
        val value = members[name] ?: return null
        return value as? Value ?: throw FormException("$name has the wrong type")
    }

    companion object {
        /** Reads a text whose value is an object. */
        fun parse(bytes: ByteArray): JsonObject =
            parseJson(bytes) as? JsonObject ?: throw FormException("the JSON value is not an object")
    }
}

/**
 * Reads one JSON text, RFC 8259 to the letter: UTF-8 without byte order mark, no duplicate names, no lone surrogates, nothing but
 * white space around the value. Values are [JsonObject], [List], [String], [JsonNumber], [Boolean] and null.
 */
internal fun parseJson(bytes: ByteArray, maximumBytes: Int = 64 * 1024, maximumDepth: Int = 16): Any? {
    if (bytes.size > maximumBytes) throw FormException("the JSON text is too large")
    val text = try {
        Charsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString()
    } catch (_: CharacterCodingException) {
        throw FormException("the JSON text is not UTF-8")
    }
    return JsonParser(text, maximumDepth).parseText()
}

/** Recursive descent. The depth limit bounds the recursion. */
private class JsonParser(private val text: String, private val maximumDepth: Int) {
    private var position = 0

    fun parseText(): Any? {
        val value = parseValue(0)
        skipWhitespace()
        if (position != text.length) throw malformed()
        return value
    }

    private fun parseValue(depth: Int): Any? {
        skipWhitespace()
        return when (peek()) {
            '{' -> parseObject(depth + 1)
            '[' -> parseArray(depth + 1)
            '"' -> parseString()
            't' -> literal("true", true)
            'f' -> literal("false", false)
            'n' -> literal("null", null)
            else -> parseNumber()
        }
    }

    private fun parseObject(depth: Int): JsonObject {
        val members = LinkedHashMap<String, Any?>()
        parseList(depth, '}') {
            val name = parseString()
            skipWhitespace()
            expect(':')
            val value = parseValue(depth)
            if (name in members) throw FormException("the JSON text names a member twice")
            members[name] = value
        }
        return JsonObject(members)
    }

    private fun parseArray(depth: Int): List<Any?> = buildList { parseList(depth, ']') { add(parseValue(depth)) } }

    private inline fun parseList(depth: Int, end: Char, element: () -> Unit) {
        if (depth > maximumDepth) throw FormException("the JSON text is nested too deeply")
        position++
        skipWhitespace()
        if (peek() == end) {
            position++
            return
        }
        while (true) {
            skipWhitespace()
            element()
            skipWhitespace()
            if (peek() != ',') break
            position++
        }
        expect(end)
    }

    private fun literal(word: String, value: Any?): Any? {
        word.forEach(::expect)
        return value
    }

    private fun parseNumber(): JsonNumber {
        val start = position
        if (peek() == '-') position++
        if (peek() == '0') position++ else digits()
        if (position < text.length && text[position] == '.') {
            position++
            digits()
        }
        if (position < text.length && text[position] in "eE") {
            position++
            if (peek() in "+-") position++
            digits()
        }
        return JsonNumber(text.substring(start, position))
    }

    private fun digits() {
        if (!peek().isAsciiDigit()) throw malformed()
        while (position < text.length && text[position].isAsciiDigit()) position++
    }

    private fun parseString(): String {
        expect('"')
        val string = StringBuilder()
        while (true) {
            val c = peek()
            position++
            when {
                c == '"' -> break
                c == '\\' -> string.append(parseEscape())
                c < ' ' -> throw malformed()
                else -> string.append(c)
            }
        }
        // Escapes can make half of a surrogate pair.
        var index = 0
        while (index < string.length) {
            val c = string[index++]
            if (c.isLowSurrogate() || c.isHighSurrogate() && (index == string.length || !string[index++].isLowSurrogate())) {
                throw malformed()
            }
        }
        return string.toString()
    }

    private fun parseEscape(): Char {
        val c = peek()
        position++
        return when (c) {
            '"', '\\', '/' -> c
            'b' -> '\b'
            'f' -> '\u000C'
            'n' -> '\n'
            'r' -> '\r'
            't' -> '\t'
            'u' -> {
                var value = 0
                repeat(4) {
                    // Character.digit knows the digits of other scripts too.
                    val digit = if (peek() < '\u0080') Character.digit(peek(), 16) else -1
                    if (digit < 0) throw malformed()
                    value = value shl 4 or digit
                    position++
                }
                value.toChar()
            }
            else -> throw malformed()
        }
    }

    private fun skipWhitespace() {
        while (position < text.length && text[position] in " \t\n\r") position++
    }

    private fun expect(c: Char) {
        if (peek() != c) throw malformed()
        position++
    }

    private fun peek(): Char = if (position < text.length) text[position] else throw malformed()

    private fun malformed() = FormException("not JSON")
}

/** Writes an object. Members that are null are left out. Values are texts, integers, booleans, lists of texts and objects. */
internal fun writeJson(vararg members: Pair<String, Any?>): ByteArray = buildString { appendJson(members.toMap()) }.toByteArray()

private fun StringBuilder.appendJson(value: Any) {
    when (value) {
        is Map<*, *> -> {
            append('{')
            var separator = ""
            for ((name, member) in value) {
                if (member == null) continue
                append(separator)
                appendJson(name as String)
                append(':')
                appendJson(member)
                separator = ","
            }
            append('}')
        }
        is List<*> -> {
            append('[')
            value.forEachIndexed { index, element ->
                if (index > 0) append(',')
                appendJson(element as String)
            }
            append(']')
        }
        is String -> appendQuoted(value)
        else -> append(value) // Integers and booleans.
    }
}

private fun StringBuilder.appendQuoted(text: String) {
    append('"')
    for (c in text) {
        when {
            c == '"' || c == '\\' -> append('\\').append(c)
            c < ' ' -> append("\\u00").append(if (c.code < 16) '0' else '1').append("0123456789abcdef"[c.code and 15])
            else -> append(c)
        }
    }
    append('"')
}
