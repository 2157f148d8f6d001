import StrictJSON
import Testing

@testable import AuthService

/// The tables of members (`jsonMembers`) have each member of an app record exactly once.
@Suite struct RecordMemberTests {
    @Test func `a record is written with the members of the tables, in any order, and no others`() throws {
        let record = JSONValue.object(try AppRecord(JSONFields(AppRecordTests.everything())).json(secrets: .plain))
        for (path, names) in AppRecord.memberNames {
            let object = path.reduce(Optional(record)) { $0?.object?[$1] }?.object
            #expect(object?.members.map(\.name).sorted() == names.sorted(), "\(path)")
        }
    }

    @Test func `a newcomer sets at most 15 members, and an object belongs to them if one of its members does`() throws {
        func check(_ members: [JSONMemberDescription]) -> Int {
            var everyday = 0
            for member in members {
                #expect(member.meaning.hasSuffix("."), "\(member.name)")
                var count = member.isEveryday ? 1 : 0
                if case .object(let own) = member.type { count = check(own) }
                #expect(member.isEveryday == (count > 0), "\(member.name)")
                everyday += count
            }
            return everyday
        }
        #expect((1...15).contains(check(AppRecord.members)))
    }

    @Test func `a record without a member has the default that the table names`() throws {
        let smallest: JSONValue = [
            "app_id": "com.example.app", "build_channel": "staging", "ios": ["app_ids": ["TEAMID1234.com.example.app"]],
            "android": ["packages": ["p"], "certificate_digests": [.string(World.certificateDigest)]],
        ]
        let record = try AppRecord(JSONFields(smallest))
        let written = JSONValue.object(record.json(secrets: .plain))
        for (path, members) in AppRecord.objects where path != ["keys", "compromise"] {
            let object = path.reduce(Optional(written)) { $0?.object?[$1] }?.object
            for member in members where member.members == nil && member.name != "build_channel" {
                guard let expected = member.defaultValue else { continue }
                // `token_type` is not written if it has its default.
                #expect((object?[member.name] ?? expected) == expected, "\(path) \(member.name)")
            }
        }
    }
}
