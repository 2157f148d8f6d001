#if os(macOS) || os(Linux)
    import Crypto
    import Foundation
    import StrictJSON
    import Testing

    @testable import AuthContract

    /// Tests our scheme 2 against another implementation of RFC 9421 and RFC 9651, if it is installed
    /// (`pip install -r Checks/interop/requirements.txt`; `SYNHEART_INTEROP_PYTHON` names the interpreter).
    @Suite(.enabled(if: OtherImplementation.isInstalled, "needs pip install -r Checks/interop/requirements.txt"))
    struct SchemeTwoInteroperability {
        static let requests: [SchemeTwoRequest] = {
            var requests = [SchemeTwoRequest()]
            for (authority, path, query) in [
                ("API.example.com:443", "/", nil), ("[::1]:8443", "/a%2Fb;c=d", ""),
                ("localhost:80", "//x/~", "a=b&c=%3F?"),
            ] as [(String, String, String?)] {
                var request = SchemeTwoRequest()
                (request.authority, request.path, request.query) = (authority, path, query)
                request.body = []
                requests.append(request)
            }
            return requests
        }()

        func url(_ request: SchemeTwoRequest) -> String {
            "\(request.scheme)://\(request.authority)\(request.path)" + (request.query.map { "?\($0)" } ?? "")
        }

        func question(_ request: SchemeTwoRequest, headers: [(String, String)]) -> [(String, JSONValue)] {
            [
                ("method", .string(request.method)), ("url", .string(url(request))),
                ("headers", .object(JSONObject(headers.map { ($0.0, .string($0.1)) }))),
                ("body", .string(Base64.standard.encode(request.body))),
            ]
        }

        @Test func `a signature of http-message-signatures verifies here`() throws {
            let answers = try OtherImplementation.ask(
                Self.requests.map { request in
                    [
                        ("do", "sign"), ("private_key", .string(SchemeTwoRequest.privateKey.pemRepresentation)),
                        ("key_id", .string(SchemeTwoRequest.key.thumbprint)), ("created", .integer(request.created)),
                        ("nonce", .string(request.nonce)),
                    ] + question(request, headers: [("X-App-ID", request.appID), ("X-Device-ID", request.deviceID)])
                })
            for (request, answer) in zip(Self.requests, answers) {
                let headers = try answer.object("headers")
                let lines = try headers.names.map { ($0, try headers.string($0)) }
                #expect(try request.verifies(with: lines))
                let base = try SchemeTwoHeaders(HeaderFields(lines)).base(
                    method: request.method, origin: RequestOrigin(scheme: request.scheme, authority: request.authority),
                    target: RequestTarget(path: RequestPath(request.path), query: request.query))
                #expect(String(decoding: base.bytes, as: UTF8.self) == (try answer.string("signature_base")))
            }
        }

        @Test func `our signature verifies there`() throws {
            let pem = JSONValue.string(SchemeTwoRequest.privateKey.publicKey.pemRepresentation)
            let questions = try Self.requests.flatMap { request in
                let good = question(request, headers: try request.lines())
                var other = request
                other.path += "x"
                // Two questions: the request itself, and a request for another path with the same headers.
                return [good, question(other, headers: try request.lines())].map {
                    [("do", "verify"), ("public_key", pem)] + $0
                }
            }
            let answers = try OtherImplementation.ask(questions)
            for (index, answer) in answers.enumerated() {
                let reason = try answer.optionalString("reason") ?? ""
                #expect(try answer.bool("verified") == (index % 2 == 0), "\(reason)")
                guard index % 2 == 0 else { continue }
                #expect(try answer.string("key_id") == SchemeTwoRequest.key.thumbprint)
                #expect(try answer.integer("created") == Self.requests[index / 2].created)
            }
        }

        /// The other parser accepts every text that our parser accepts, and serializes the result in the same way.
        @Test func `both read structured fields alike`() throws {
            var random = SeededNumbers(seed: 10)
            let texts = StructuredFields.read.map(\.0) + StructuredFieldMutations.texts(count: 4000, random: &random)
            let answers = try OtherImplementation.ask(texts.map { [("do", "parse"), ("field", .string($0))] })
            var accepted = 0
            for (text, answer) in zip(texts, answers) {
                guard let ours = try? StructuredField.Dictionary(parsing: text, field: "Test") else { continue }
                accepted += 1
                #expect(try answer.optionalString("canonical") == ours.text, "\(text)")
            }
            #expect(accepted > 300)
        }

        /// The other parser refuses every text that ours refuses, except the texts in `stricter`, which it may accept.
        @Test func `the other parser refuses what our parser refuses`() throws {
            let stricter = ["a=:aGVsbG8:", "a=:aGVsbG9=:", "a=%\"x\""]
            let answers = try OtherImplementation.ask(
                StructuredFields.refused.map { [("do", "parse"), ("field", .string($0))] })
            for (text, answer) in zip(StructuredFields.refused, answers) where !stricter.contains(text) {
                #expect(try answer.optionalString("canonical") == nil, "\(text)")
            }
        }
    }

    /// Runs `Checks/interop/http_message_signatures.py`, which answers a list of questions.
    enum OtherImplementation {
        struct Failed: Error { let status: Int32 }

        static let isInstalled = (try? run(["--check"], input: [])) != nil

        static func ask(_ questions: [[(String, JSONValue)]]) throws -> [JSONFields] {
            let input = questions.map { JSONValue.object(JSONObject($0)).text() + "\n" }.joined()
            let output = try run([], input: Array(input.utf8))
            let answers = try output.split(separator: 0x0A).map { try JSONFields(JSONValue(parsing: $0)) }
            #expect(answers.count == questions.count)
            return answers
        }

        private static func run(_ arguments: [String], input: [UInt8]) throws -> [UInt8] {
            let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent().deletingLastPathComponent()
                .appendingPathComponent("Checks/interop/http_message_signatures.py")
            let python = ProcessInfo.processInfo.environment["SYNHEART_INTEROP_PYTHON"] ?? "python3"
            let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            // Files instead of pipes: with pipes, both processes could wait for each other.
            let (questions, answers) = (folder.appendingPathComponent("in"), folder.appendingPathComponent("out"))
            try Data(input).write(to: questions)
            try Data().write(to: answers)
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            process.arguments = [python, script.path] + arguments
            process.standardInput = try FileHandle(forReadingFrom: questions)
            process.standardOutput = try FileHandle(forWritingTo: answers)
            process.standardError = FileHandle.nullDevice
            try process.run()
            process.waitUntilExit()
            guard process.terminationStatus == 0 else { throw Failed(status: process.terminationStatus) }
            return Array(try Data(contentsOf: answers))
        }
    }
#endif
