import NIOCore
import Testing

@testable import AuthProxy

/// A body that the proxy passes between the client and the backend.
@Suite struct `The pipe of a body` {
    private struct ResponseAborted: Error {}

    /// Reads to the end in a separate task, as the HTTP client does.
    private func read(_ pipe: BodyPipe) -> Task<String, any Error> {
        Task {
            var text = ""
            for try await piece in pipe { text += String(buffer: piece) }
            return text
        }
    }

    private func write(_ text: String, to pipe: BodyPipe) -> Task<Void, Never> {
        Task { await pipe.write(ByteBuffer(string: text)) }
    }

    @Test func `every piece arrives in order, and then the end`() async throws {
        let pipe = BodyPipe()
        let text = read(pipe)
        for number in 0..<100 { await pipe.write(ByteBuffer(string: "\(number) ")) }
        pipe.finish()
        #expect(try await text.value == (0..<100).map { "\($0) " }.joined())
    }

    @Test func `a piece is handed over before the next one is written`() async throws {
        let pipe = BodyPipe()
        let reader = pipe.makeAsyncIterator()
        let first = write("a", to: pipe)
        #expect(try await reader.next().map { String(buffer: $0) } == "a")
        await first.value
        pipe.finish()
        #expect(try await reader.next() == nil)
    }

    @Test func `an error ends the body without its end`() async throws {
        let pipe = BodyPipe()
        let text = read(pipe)
        await pipe.write(ByteBuffer(string: "a"))
        pipe.finish(ResponseAborted())
        await #expect(throws: ResponseAborted.self) { try await text.value }
    }

    @Test func `an error before the first read is not lost`() async throws {
        let pipe = BodyPipe()
        pipe.finish(ResponseAborted())
        await #expect(throws: ResponseAborted.self) { try await read(pipe).value }
    }

    @Test func `the writer does not wait after the reader has stopped`() async throws {
        let pipe = BodyPipe()
        do {
            let reader = pipe.makeAsyncIterator()
            let first = write("a", to: pipe)
            _ = try await reader.next()
            await first.value
        }
        for _ in 0..<3 { await pipe.write(ByteBuffer(string: "b")) }
        pipe.finish()
    }

    @Test func `a closed pipe releases both sides`() async throws {
        let written = BodyPipe()
        let writing = write("a", to: written)
        written.close()
        await writing.value
        await written.write(ByteBuffer(string: "b"))
        let awaited = BodyPipe()
        let text = read(awaited)
        awaited.close()
        await #expect(throws: CancellationError.self) { try await text.value }
    }

    @Test func `a writer that is cancelled does not wait`() async throws {
        let pipe = BodyPipe()
        let waiting = write("a", to: pipe)
        waiting.cancel()
        await waiting.value
        await #expect(throws: CancellationError.self) { try await read(pipe).value }
    }

    @Test func `after a discard the writer does not wait, and the reader gets no end`() async throws {
        let pipe = BodyPipe()
        let waiting = write("a", to: pipe)
        pipe.discard()
        await waiting.value
        for _ in 0..<3 { await pipe.write(ByteBuffer(string: "b")) }
        pipe.finish()
        let text = read(pipe)
        pipe.close()
        await #expect(throws: CancellationError.self) { try await text.value }
    }

    @Test func `an error after a discard reaches the reader`() async throws {
        let pipe = BodyPipe()
        let text = read(pipe)
        await pipe.write(ByteBuffer(string: "a"))
        pipe.discard()
        pipe.finish(ResponseAborted())
        await #expect(throws: ResponseAborted.self) { try await text.value }
    }

    @Test func `the last reference to an answer closes the pipe`() async throws {
        let pipe = BodyPipe()
        pipe.discard()
        let text = read(pipe)
        do { _ = BodyPipe.Closer(pipe) }
        await #expect(throws: CancellationError.self) { try await text.value }
    }
}
