package ai.synheart.standins;

import java.io.ByteArrayOutputStream;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;

/** Writes DER. */
final class Der {
    private Der() {}

    static byte[] tagged(int tag, byte[]... contents) {
        byte[] content = join(contents);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.write(tag);
        if (content.length < 128) {
            out.write(content.length);
        } else {
            byte[] length = BigInteger.valueOf(content.length).toByteArray();
            int skip = length[0] == 0 ? 1 : 0;
            out.write(0x80 | length.length - skip);
            out.write(length, skip, length.length - skip);
        }
        out.write(content, 0, content.length);
        return out.toByteArray();
    }

    static byte[] join(byte[]... parts) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (byte[] part : parts) out.write(part, 0, part.length);
        return out.toByteArray();
    }

    static byte[] sequence(byte[]... contents) { return tagged(0x30, contents); }

    static byte[] set(byte[]... contents) { return tagged(0x31, contents); }

    static byte[] integer(long value) { return tagged(0x02, BigInteger.valueOf(value).toByteArray()); }

    static byte[] enumerated(int value) { return tagged(0x0A, new byte[] {(byte) value}); }

    static byte[] octets(byte[] value) { return tagged(0x04, value); }

    static byte[] bits(byte[] value, int unused) { return tagged(0x03, new byte[] {(byte) unused}, value); }

    static byte[] bool(boolean value) { return tagged(0x01, new byte[] {(byte) (value ? 0xFF : 0)}); }

    static byte[] utf8(String text) { return tagged(0x0C, text.getBytes(StandardCharsets.UTF_8)); }

    static byte[] printable(String text) { return tagged(0x13, text.getBytes(StandardCharsets.US_ASCII)); }

    /** A UTCTime from a text of the form YYMMDDHHMMSSZ. */
    static byte[] utcTime(String text) { return tagged(0x17, text.getBytes(StandardCharsets.US_ASCII)); }

    static byte[] oid(long... arcs) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        base128(out, arcs[0] * 40 + arcs[1]);
        for (int i = 2; i < arcs.length; i++) base128(out, arcs[i]);
        return tagged(0x06, out.toByteArray());
    }

    /** An element {@code [tag] EXPLICIT}. Tag numbers above 30 are allowed. */
    static byte[] explicit(int tag, byte[] value) {
        if (tag < 31) return tagged(0xA0 | tag, value);
        ByteArrayOutputStream identifier = new ByteArrayOutputStream();
        identifier.write(0xBF);
        base128(identifier, tag);
        byte[] rest = tagged(0, value);
        identifier.write(rest, 1, rest.length - 1);
        return identifier.toByteArray();
    }

    private static void base128(ByteArrayOutputStream out, long value) {
        int groups = 1;
        while (value >> 7 * groups != 0) groups++;
        for (int i = groups - 1; i >= 0; i--) out.write((int) (value >> 7 * i & 0x7F) | (i == 0 ? 0 : 0x80));
    }
}
