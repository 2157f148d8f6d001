package ai.synheart.auth.wire

/** Reads a P-256 signature, `SEQUENCE { INTEGER r, INTEGER s }` in strict DER (SEC 1 section C.8), as r || s of 64 bytes. */
internal fun rawSignature(der: ByteArray): ByteArray {
    var position = 0
    fun next(): Int = if (position < der.size) der[position++].toInt() and 0xFF else throw malformedSignature()

    /** Reads a minimal, non-negative INTEGER of at most 256 bits. Returns it padded to 32 bytes. */
    fun integer(): ByteArray {
        if (next() != 0x02) throw malformedSignature()
        val length = next()
        if (length == 0 || length > 33 || der.size - position < length) throw malformedSignature()
        var digits = der.copyOfRange(position, position + length)
        position += length
        if (digits[0] < 0) throw malformedSignature()
        if (digits[0] == 0.toByte() && length > 1) {
            // A leading zero is allowed only if the number would be negative without it.
            if (digits[1] >= 0) throw malformedSignature()
            digits = digits.copyOfRange(1, length)
        }
        if (digits.size > 32) throw malformedSignature()
        return ByteArray(32 - digits.size) + digits
    }
    if (next() != 0x30 || next() != der.size - 2) throw malformedSignature()
    val raw = integer() + integer()
    if (position != der.size) throw malformedSignature()
    return raw
}

private fun malformedSignature() = FormException("the signature must be ASN.1 DER ECDSA")
