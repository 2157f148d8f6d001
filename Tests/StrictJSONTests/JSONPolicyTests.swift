import StrictJSON
import Testing

/// A policy with one member for each rule about app records: a record may set the member to some values only, to any value,
/// or not at all.
private struct DoorPolicy: JSONPolicy, Equatable {
    var guests: Set<String> = ["ann"]
    var maximumAge: Int64? = 10
    var isOpen = false

    static let jsonMembers: [JSONMember<DoorPolicy>] = [
        JSONMember("guests", \.guests, .set(of: .text), null: [], inAppRecord: .only(.set(of: .text, atLeast: 1))),
        JSONMember("maximum_age", \.maximumAge, .integer(in: 0...100)),
        JSONMember("open", \.isOpen, .bool, null: false, inAppRecord: .none),
    ]
}

@Suite struct JSONPolicyTests {
    private func fields(_ text: String) throws -> JSONFields { try JSONFields(JSONValue(parsing: text), path: "door") }

    private func refusal(_ text: String, ofAppRecord: Bool) -> JSONError? {
        do {
            let fields = try fields(text)
            if ofAppRecord {
                _ = try DoorPolicy().applying(appRecord: fields)
            } else {
                _ = try DoorPolicy().applying(fields)
            }
            return nil
        } catch { return error as? JSONError }
    }

    @Test func `an audit's object keeps what it does not name, and null is not checked`() throws {
        #expect(try DoorPolicy().applying(fields("{}")) == DoorPolicy())
        let read = try DoorPolicy().applying(fields(#"{"guests": null, "maximum_age": null, "open": true}"#))
        #expect(read == DoorPolicy(guests: [], maximumAge: nil, isOpen: true))
    }

    @Test func `an app record keeps what it does not name, and null keeps too`() throws {
        #expect(try DoorPolicy().applying(appRecord: fields(#"{"guests": null, "maximum_age": null}"#)) == DoorPolicy())
        let read = try DoorPolicy().applying(appRecord: fields(#"{"guests": ["bob"], "maximum_age": 5}"#))
        #expect(read == DoorPolicy(guests: ["bob"], maximumAge: 5))
    }

    @Test func `an app record has neither members of audits nor values that its rules refuse`() {
        #expect(refusal(#"{"open": false}"#, ofAppRecord: true) == JSONError(.unknownName, path: "door.open"))
        #expect(refusal(#"{"note": ""}"#, ofAppRecord: true) == JSONError(.unknownName, path: "door.note"))
        #expect(refusal(#"{"guests": []}"#, ofAppRecord: true) == JSONError(.wrongType, path: "door.guests"))
        #expect(refusal(#"{"guests": [], "note": ""}"#, ofAppRecord: false) == nil)
    }

    @Test(arguments: [true, false])
    func `an unknown member and a value that is not understood are errors with their path`(ofAppRecord: Bool) {
        #expect(refusal(#"{"gusts": []}"#, ofAppRecord: ofAppRecord) == JSONError(.unknownName, path: "door.gusts"))
        for text in [#"{"guests": "ann"}"#, #"{"guests": ["ann", 1]}"#] {
            #expect(refusal(text, ofAppRecord: ofAppRecord) == JSONError(.wrongType, path: "door.guests"))
        }
        for text in [#"{"maximum_age": 101}"#, #"{"maximum_age": "1"}"#, #"{"maximum_age": 1.0}"#] {
            #expect(refusal(text, ofAppRecord: ofAppRecord) == JSONError(.wrongType, path: "door.maximum_age"))
        }
    }

    @Test func `members of another reader are skipped where they are named`() throws {
        let read = try DoorPolicy().applying(fields(#"{"keys": 1, "open": true}"#), ignoring: ["keys"])
        #expect(read.isOpen)
        #expect(try DoorPolicy().applying(appRecord: fields(#"{"keys": 1}"#), ignoring: ["keys"]) == DoorPolicy())
    }

    @Test func `what is written is read back`() throws {
        let policy = DoorPolicy(guests: ["b", "a"], maximumAge: nil, isOpen: true)
        #expect(JSONValue.object(policy.json).text() == #"{"guests":["a","b"],"maximum_age":null,"open":true}"#)
        #expect(JSONValue.object(policy.appRecordJSON).text() == #"{"guests":["a","b"],"maximum_age":null}"#)
        #expect(try DoorPolicy().applying(JSONFields(.object(policy.json))) == policy)
    }

    @Test func `a digest is hexadecimal or base64 of 32 bytes`() {
        let zeros = [UInt8](repeating: 0, count: 32)
        for text in [
            String(repeating: "0", count: 64), String(repeating: "A", count: 43),
            "\(String(repeating: "A", count: 43))=",
        ] {
            #expect(JSONCoding.sha256.read(.string(text)) == zeros)
        }
        for text in [
            "", String(repeating: "0", count: 62), String(repeating: "A", count: 42), String(repeating: "g", count: 64),
        ] {
            #expect(JSONCoding.sha256.read(.string(text)) == nil)
        }
        #expect(JSONCoding.sha256.write(zeros) == .string(String(repeating: "0", count: 64)))
    }
}
