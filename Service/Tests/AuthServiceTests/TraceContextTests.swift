import AuthService
import Testing

/// The header `traceparent`, by W3C Trace Context, sections 2.2 and 3.2.
@Suite struct TraceContextTests {
    private static let example = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    @Test func `a context is read and written`() throws {
        let context = try #require(TraceContext(traceparent: Self.example))
        #expect(context.traceID.text == "4bf92f3577b34da6a3ce929d0e0e4736")
        #expect(TraceContext.text(context.spanID) == "00f067aa0ba902b7")
        #expect(context.isSampled)
        #expect(context.traceparent == Self.example)
    }

    @Test(arguments: [("00", false), ("01", true), ("02", false), ("03", true), ("ff", true)])
    func `only the flag of sampling counts`(flags: String, isSampled: Bool) throws {
        let ids = String(Self.example.dropLast(2))
        let context = try #require(TraceContext(traceparent: ids + flags))
        #expect(context.isSampled == isSampled)
        #expect(context.traceparent == ids + (isSampled ? "01" : "00"))
    }

    @Test(arguments: [
        "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-comes-later",
    ]) func `the parts of a later version are read`(text: String) {
        #expect(TraceContext(traceparent: text)?.traceparent == Self.example)
    }

    @Test(arguments: [
        "", "00", "-", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 ",
        " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.later",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-é",
    ]) func `any other text is no context`(text: String) {
        #expect(TraceContext(traceparent: text) == nil)
    }

    @Test func `ids of zeros are none`() throws {
        #expect(TraceContext.TraceID(high: 0, low: 0) == nil)
        let traceID = try #require(TraceContext.TraceID(high: 0, low: 1))
        #expect(TraceContext(traceID, spanID: 0, isSampled: true) == nil)
        let context = TraceContext(traceID, spanID: 10, isSampled: false)
        #expect(context?.traceparent == "00-00000000000000000000000000000001-000000000000000a-00")
    }
}
