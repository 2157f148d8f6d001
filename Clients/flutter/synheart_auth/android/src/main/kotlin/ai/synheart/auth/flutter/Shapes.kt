package ai.synheart.auth.flutter

/** A message on the channel does not have the shape that the contract requires. The error's text quotes nothing of that message. */
internal class MalformedMessage(message: String) : Exception(message)

/**
 * The required form of a value on the platform channel. `contract/channel.json` has the shapes of all messages.
 *
 * A shape is strict: it refuses absent and unknown fields, other types, and values beyond a limit.
 */
internal sealed class Shape(val nullable: Boolean) {
    /** The expected type and range, for errors. */
    abstract val expectation: String

    /** Throws [MalformedMessage], which names the place, unless the value has this shape. */
    fun check(value: Any?, place: String) {
        if (value != null) return checkPresent(value, place)
        if (!nullable) throw MalformedMessage("$place: expected $expectation, found null")
    }

    protected abstract fun checkPresent(value: Any, place: String)

    /** The error of a value of another type. */
    protected fun wrong(value: Any, place: String) =
        MalformedMessage("$place: expected $expectation, found ${value.javaClass.simpleName}")

    /** The error of a value beyond a limit. */
    protected fun beyond(place: String) = MalformedMessage("$place: expected $expectation")

    /** A text of at most [max] UTF-16 code units. */
    class Text(val max: Int, nullable: Boolean = false) : Shape(nullable) {
        override val expectation get() = "a text of at most $max characters"

        override fun checkPresent(value: Any, place: String) {
            if (value !is String) throw wrong(value, place)
            if (value.length > max) throw beyond(place)
        }
    }

    /** At most [max] bytes. */
    class Bytes(val max: Int, nullable: Boolean = false) : Shape(nullable) {
        override val expectation get() = "at most $max bytes"

        override fun checkPresent(value: Any, place: String) {
            if (value !is ByteArray) throw wrong(value, place)
            if (value.size > max) throw beyond(place)
        }
    }

    /** A whole number in [range]. The codec writes it in 4 or 8 bytes. */
    class Integer(val range: LongRange, nullable: Boolean = false) : Shape(nullable) {
        override val expectation get() = "a whole number from ${range.first} to ${range.last}"

        override fun checkPresent(value: Any, place: String) {
            val number = (value as? Long) ?: (value as? Int)?.toLong() ?: throw wrong(value, place)
            if (number !in range) throw beyond(place)
        }
    }

    /** A finite number. */
    class Number(nullable: Boolean = false) : Shape(nullable) {
        override val expectation get() = "a finite number"

        override fun checkPresent(value: Any, place: String) {
            if (value !is Double) throw wrong(value, place)
            if (!value.isFinite()) throw beyond(place)
        }
    }

    /** True or false. */
    class Flag(nullable: Boolean = false) : Shape(nullable) {
        override val expectation get() = "true or false"

        override fun checkPresent(value: Any, place: String) {
            if (value !is Boolean) throw wrong(value, place)
        }
    }

    /** One of the texts in [values]. */
    class Choice(val values: List<String>, nullable: Boolean = false) : Shape(nullable) {
        override val expectation get() = "one of ${values.joinToString()}"

        override fun checkPresent(value: Any, place: String) {
            if (value !is String) throw wrong(value, place)
            if (value !in values) throw beyond(place)
        }
    }

    /** A list of at most [max] values of one shape. */
    class Items(val item: Shape, val max: Int, nullable: Boolean = false) : Shape(nullable) {
        override val expectation get() = "a list of at most $max"

        override fun checkPresent(value: Any, place: String) {
            if (value !is List<*>) throw wrong(value, place)
            if (value.size > max) throw beyond(place)
            value.forEachIndexed { index, part -> item.check(part, "$place[$index]") }
        }
    }

    /** A map with exactly these fields. */
    class Message(val fields: Map<String, Shape>, nullable: Boolean = false) : Shape(nullable) {
        constructor(vararg fields: Pair<String, Shape>) : this(mapOf(*fields))

        override val expectation get() = "a message"

        override fun checkPresent(value: Any, place: String) {
            if (value !is Map<*, *>) throw wrong(value, place)
            for ((name, shape) in fields) {
                if (!value.containsKey(name)) throw MalformedMessage("$place: the field $name is absent")
                shape.check(value[name], "$place.$name")
            }
            if (value.size != fields.size) {
                throw MalformedMessage("$place: expected only the fields ${fields.keys.joinToString()}")
            }
        }
    }
}

/** A method of the channel: its message, and its result; null if it has none. */
internal class Call(val arguments: Shape.Message, val result: Shape?)

/** The checked fields of a message. Reading an unknown field, or a field as another type, is a bug in this plugin's code. */
internal class Fields private constructor(private val values: Map<*, *>) {
    constructor(shape: Shape.Message, value: Any?, place: String) : this(
        value.also { shape.check(it, place) } as Map<*, *>,
    )

    fun text(name: String): String = values[name] as String
    fun optionalText(name: String): String? = values[name] as String?
    fun bytes(name: String): ByteArray = values[name] as ByteArray
    fun flag(name: String): Boolean = values[name] as Boolean
    fun number(name: String): Double = values[name] as Double
    fun integer(name: String): Long = (values[name] as Number).toLong()
    fun optionalInteger(name: String): Long? = (values[name] as Number?)?.toLong()
    fun texts(name: String): List<String> = (values[name] as List<*>).map { it as String }
    fun messages(name: String): List<Fields> = (values[name] as List<*>).map { Fields(it as Map<*, *>) }
}
