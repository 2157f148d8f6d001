package ai.synheart.auth.wire

/**
 * The destination of a request: scheme and authority, normalized so that equal origins are equal values.
 *
 * `@scheme` and `@authority` of RFC 9421: lower case, without the scheme's default port.
 */
@ConsistentCopyVisibility
internal data class RequestOrigin private constructor(val scheme: String, val authority: String) {
    /** `https://auth.example.com`. */
    val text: String get() = "$scheme://$authority"

    /** Whether secrets may be sent there: https, or http to this machine. */
    val isSecure: Boolean get() = scheme == "https" || isLoopback

    /** Whether the host is `localhost`, in 127.0.0.0/8, or `[::1]`. */
    private val isLoopback: Boolean
        get() {
            val host = if (authority.startsWith("[")) authority.substringBefore("]") + "]" else authority.substringBefore(":")
            return host == "localhost" || host == "[::1]" || LOOPBACK.matches(host)
        }

    companion object {
        private const val BYTE = "(0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])"
        private val LOOPBACK = Regex("127(\\.$BYTE){3}")
        private val NAME = Regex("[a-z0-9._~-]{1,255}")
        private val IPV6 = Regex("\\[[0-9a-f.]*:[0-9a-f:.]*]")

        /** Parses `scheme://authority`, without a path. */
        fun parse(text: String): RequestOrigin {
            val colon = text.indexOf("://")
            if (colon < 0) throw FormException("an origin must be written as scheme://authority")
            return of(text.substring(0, colon), text.substring(colon + 3))
        }

        /** An origin from its parts. Refuses user information, escapes and empty parts. */
        fun of(scheme: String, authority: String): RequestOrigin {
            val lower = scheme.lowerAscii()
            val defaultPort = when (lower) {
                "https" -> "443"
                "http" -> "80"
                else -> throw FormException("the scheme must be http or https")
            }
            val text = authority.lowerAscii()
            // The colons of an IPv6 address are inside its brackets.
            val colon = text.indexOf(':', startIndex = text.lastIndexOf(']') + 1)
            val host = if (colon < 0) text else text.substring(0, colon)
            if (host.length > 255 || !(NAME.matches(host) || IPV6.matches(host))) {
                throw FormException("the authority must be a host, with or without a port")
            }
            if (colon < 0) return RequestOrigin(lower, host)
            val port = text.substring(colon + 1)
            // One spelling for each port: no sign, no leading zeros.
            if (port.toIntOrNull()?.takeIf { it in 1..65_535 }?.toString() != port) {
                throw FormException("the port must be a number from 1 to 65535")
            }
            return RequestOrigin(lower, if (port == defaultPort) host else "$host:$port")
        }
    }
}

/** The target of a request line in origin form: path and query, as sent. */
internal class RequestTarget private constructor(
    val path: String,
    /** The text after the first `?`; null if there is none. */
    val query: String?,
) {
    companion object {
        /** Splits a target in origin form. Refuses absolute form, authority form and `*`. */
        fun parse(text: String): RequestTarget {
            val mark = text.indexOf('?')
            val path = if (mark < 0) text else text.substring(0, mark)
            val query = if (mark < 0) null else text.substring(mark + 1)
            checkPath(path)
            if (query != null && !query.all { it in '!'..'~' && it != '#' }) {
                throw FormException("the query must be printable ASCII without #")
            }
            return RequestTarget(path, query)
        }
    }
}

/** A request's URL, split without changing a character: the signed URL must be the one that is sent. */
internal class RequestUrl private constructor(val origin: RequestOrigin, val target: RequestTarget) {
    companion object {
        /** Reads `scheme://authority/path?query`. An absent path is read as `/`. Refuses a fragment, which is never sent. */
        fun parse(url: String): RequestUrl {
            val start = url.indexOf("://") + 3
            val end = url.indexOfAny(charArrayOf('/', '?', '#'), if (start < 3) 0 else start).let { if (it < 0) url.length else it }
            val target = url.substring(end)
            return RequestUrl(
                RequestOrigin.parse(url.substring(0, end)), RequestTarget.parse(if (target.startsWith("/")) target else "/$target"),
            )
        }
    }
}

private val STRUCTURAL_ESCAPE = Regex("%(2[eEfF]|5[cC]|3[bB]|00)")

/**
 * Refuses every path that two servers could read differently.
 *
 * A path must begin with `/`, and must not have characters outside `0x21...0x7E`, `#`, `?`, `%00` or dot segments. To find dot
 * segments, `%2e`, `%2f`, `%5c` and `%3b` are decoded, and `\` and `;` end a segment as `/` does: some servers do the same.
 */
internal fun checkPath(path: String) {
    if (!path.startsWith("/")) throw FormException("the path must begin with /")
    if (!path.all { it in '!'..'~' && it != '#' && it != '?' }) throw FormException("the path must be printable ASCII without # and ?")
    val plain = STRUCTURAL_ESCAPE.replace(path) { it.groupValues[1].toInt(16).toChar().toString() }
    if ('\u0000' in plain) throw FormException("the path must not contain %00")
    if (plain.split('/', '\\', ';').any { it == "." || it == ".." }) throw FormException("the path must not have dot segments")
}

private const val TOKEN_MARKS = "!#$%&'*+-.^_`|~"

/** Whether a text is a token (RFC 9110 section 5.6.2), such as the name of a header. */
internal fun isToken(text: String): Boolean = text.isNotEmpty() && text.all { it.isAsciiLetter() || it.isAsciiDigit() || it in TOKEN_MARKS }

/** Whether a text is a method that the protocol allows. */
internal fun isMethod(text: String): Boolean = text.length in 1..32 && text.all { it.isAsciiLetter() || it == '-' }
