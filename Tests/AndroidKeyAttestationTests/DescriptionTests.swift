import Bytes
import Foundation
import LenientDER
import Testing

@testable import AndroidKeyAttestation
@testable import AttestationTestKit

/// Parses one list, and returns it with its quirks.
private func read(_ elements: [[UInt8]]) throws -> (list: AuthorizationList, noted: [String]) {
    var noted = QuirkCollector()
    let node = try DERNode(parsing: DERWriter.sequence(of: elements))
    return (try AuthorizationList(node, named: "list", noting: &noted), noted.found)
}

@Suite("Authorization lists")
struct AuthorizationListTests {
    private typealias Value = AuthorizationList.Value

    @Test("a list has at most 128 authorizations")
    func count() throws {
        func elements(_ count: Int) -> [[UInt8]] {
            (0..<count).map { DERWriter.explicit(UInt32(1000 + $0), DERWriter.null) }
        }
        #expect(try read(elements(128)).list.entries.count == 128)
        let error = #expect(throws: DERError.self) { try read(elements(129)) }
        #expect(error?.code == .tooManyNodes)
    }

    @Test("the tags of Google's schema have its names and types")
    func schema() {
        let schema: [UInt32: (name: String, kind: AuthorizationTag.Kind)] = [
            1: ("purpose", .integers), 2: ("algorithm", .integer), 3: ("keySize", .integer),
            4: ("blockMode", .integers), 5: ("digest", .integers), 6: ("padding", .integers),
            7: ("callerNonce", .flag), 8: ("minMacLength", .integer), 10: ("ecCurve", .integer),
            11: ("mlDsaVariant", .integer), 200: ("rsaPublicExponent", .integer), 203: ("mgfDigest", .integers),
            303: ("rollbackResistance", .flag), 305: ("earlyBootOnly", .flag), 400: ("activeDateTime", .integer),
            401: ("originationExpireDateTime", .integer), 402: ("usageExpireDateTime", .integer),
            405: ("usageCountLimit", .integer), 502: ("userSecureId", .integer), 503: ("noAuthRequired", .flag),
            504: ("userAuthType", .integer), 505: ("authTimeout", .integer), 506: ("allowWhileOnBody", .flag),
            507: ("trustedUserPresenceRequired", .flag), 508: ("trustedConfirmationRequired", .flag),
            509: ("unlockedDeviceRequired", .flag), 600: ("allApplications", .flag),
            601: ("applicationId", .octets), 701: ("creationDateTime", .integer), 702: ("origin", .integer),
            703: ("rollbackResistant", .flag), 704: ("rootOfTrust", .rootOfTrust), 705: ("osVersion", .integer),
            706: ("osPatchLevel", .integer), 709: ("attestationApplicationId", .applicationID),
            710: ("attestationIdBrand", .text), 711: ("attestationIdDevice", .text),
            712: ("attestationIdProduct", .text), 713: ("attestationIdSerial", .text),
            714: ("attestationIdImei", .text), 715: ("attestationIdMeid", .text),
            716: ("attestationIdManufacturer", .text), 717: ("attestationIdModel", .text),
            718: ("vendorPatchLevel", .integer), 719: ("bootPatchLevel", .integer),
            720: ("deviceUniqueAttestation", .flag), 721: ("identityCredentialKey", .flag),
            723: ("attestationIdSecondImei", .text), 724: ("moduleHash", .octets),
        ]
        #expect(Set(AuthorizationTag.known.keys) == Set(schema.keys))
        for (tag, expected) in schema {
            let known = AuthorizationTag.known[tag]
            #expect(known?.name == expected.name && known?.kind == expected.kind, "\(tag)")
        }
    }

    @Test("every known tag is read by its type, and a value of another type is kept and reported")
    func types() throws {
        let root = DERWriter.sequence(
            DERWriter.octetString([UInt8](repeating: 1, count: 32)), DERWriter.boolean(true), DERWriter.enumerated(0))
        let application = DERWriter.octetString(
            DERWriter.sequence(
                DERWriter.set(of: [DERWriter.sequence(DERWriter.octetString([0x61]), DERWriter.integer(7))]),
                DERWriter.set(of: [DERWriter.octetString([1, 2])])))
        for (tag, known) in AuthorizationTag.known {
            let (right, wrong): ([UInt8], [UInt8]) =
                switch known.kind {
                case .integer: (DERWriter.integer(5), DERWriter.null)
                case .integers: (DERWriter.set(of: [DERWriter.integer(5)]), DERWriter.integer(5))
                case .flag: (DERWriter.null, DERWriter.integer(1))
                case .octets, .text: (DERWriter.octetString([0x61]), DERWriter.utf8String("a"))
                case .rootOfTrust: (root, DERWriter.octetString(root))
                case .applicationID: (application, DERWriter.octetString([0x30]))
                }
            let value: Value? = try read([DERWriter.explicit(tag, right)]).list[tag]
            switch (known.kind, value) {
            case (.integer, .integer(5)), (.integers, .integers([5])), (.flag, .flag), (.octets, .octets([0x61])),
                (.text, .text("a")), (.rootOfTrust, .rootOfTrust), (.applicationID, .applicationID):
                break
            default: Issue.record("\(known.name): \(String(describing: value))")
            }
            let (odd, noted) = try read([DERWriter.explicit(tag, wrong)])
            #expect(odd.entries.map(\.name) == [known.name] && odd[tag] == .unknown(wrong))
            #expect(noted == ["unexpected-type:\(known.name)"])
        }
    }

    @Test("each property reads its own tag")
    func properties() throws {
        func list(_ tag: UInt32, _ value: Int64 = 42) throws -> AuthorizationList {
            try read([DERWriter.explicit(tag, DERWriter.integer(value))]).list
        }
        #expect(try read([DERWriter.explicit(1, DERWriter.set(of: [DERWriter.integer(2)]))]).list.purposes == [2])
        #expect(try list(2).algorithm == 42)
        #expect(try list(701).creationDateTime == 42)
        #expect(try list(702).origin == 42)
        #expect(try list(705).osVersion == 42)
        #expect(try list(706).osPatchLevel == 42)
        #expect(try list(718).vendorPatchLevel == 42)
        #expect(try list(719).bootPatchLevel == 42)
        #expect(try read([DERWriter.explicit(600, DERWriter.null)]).list.isOpenToAllApplications)
        // The tag says that all applications may use the key. A value of any type has this effect, so that a wrong type
        // cannot hide the tag.
        #expect(try list(600).isOpenToAllApplications)
        #expect(try !list(601).isOpenToAllApplications)
        let nothing = try read([]).list
        #expect(nothing.purposes == nil && nothing.algorithm == nil && nothing.origin == nil)
        #expect(nothing.rootOfTrust == nil && nothing.attestationApplicationID == nil)
    }

    @Test(
        "unknown tags and elements of any shape are skipped and reported",
        arguments: [
            (DERWriter.explicit(999, DERWriter.null), "unknown-tag:list:999", [0x05, 0x00]),
            (DERWriter.explicit(12, DERWriter.set(of: [])), "unknown-tag:list:12", [0x31, 0x00]),
            // The tag contains no element, two elements, or octets instead of an element.
            (DERWriter.element([0xBF, 0x87, 0x67], []), "unknown-tag:list:999", []),
            (DERWriter.element([0xBF, 0x87, 0x67], [5, 0, 5, 0]), "unknown-tag:list:999", [5, 0, 5, 0]),
            (DERWriter.element([0x9F, 0x87, 0x67], [0xFF]), "unknown-tag:list:999", [0xFF]),
            // A universal, an application and a private tag.
            (DERWriter.integer(1), "unknown-element:list", nil),
            (DERWriter.element([0x61], DERWriter.set(of: [])), "unknown-element:list", nil),
            (DERWriter.element([0xE1], DERWriter.set(of: [])), "unknown-element:list", nil),
        ] as [([UInt8], String, [UInt8]?)])
    func unknown(element: [UInt8], quirk: String, content: [UInt8]?) throws {
        let algorithm = DERWriter.explicit(2, DERWriter.integer(3))
        let (list, noted) = try read([algorithm, element])
        #expect(list.algorithm == 3)
        #expect(noted == [quirk])
        #expect(list.entries.dropFirst().map(\.value) == content.map { [.unknown($0)] } ?? [])
        #expect(list.entries.dropFirst().allSatisfy { $0.name == nil })
    }

    @Test("a known tag of another shape is not read, and hides nothing")
    func oddShapes() throws {
        let two = DERWriter.element([0xA1], DERWriter.set(of: [DERWriter.integer(2)]) + DERWriter.set(of: []))
        for (element, name) in [
            (two, "purpose"), (DERWriter.element([0x81], [2]), "purpose"), (DERWriter.element([0xA1], []), "purpose"),
        ] {
            let (list, noted) = try read([element])
            #expect(list.purposes == nil)
            #expect(noted == ["unexpected-type:\(name)"])
            #expect(throws: DERError.self) {
                try read([element, DERWriter.explicit(1, DERWriter.set(of: [DERWriter.integer(2)]))])
            }
        }
    }

    @Test("a known tag twice is an error; of an unknown one the first is kept")
    func repeated() throws {
        let algorithm = DERWriter.explicit(2, DERWriter.integer(3))
        let error = #expect(throws: DERError.self) { try read([algorithm, algorithm]) }
        #expect(error?.code == .invalidContent)
        let unknown = DERWriter.explicit(999, DERWriter.null)
        let (list, noted) = try read([unknown, DERWriter.explicit(999, DERWriter.integer(1))])
        #expect(list.entries.map(\.value) == [.unknown([0x05, 0x00])])
        #expect(noted == ["unknown-tag:list:999", "repeated-unknown-tag:list:999"])
    }

    @Test("tags out of order are reported, those in order are not")
    func order() throws {
        let (first, second) = (
            DERWriter.explicit(2, DERWriter.integer(3)), DERWriter.explicit(3, DERWriter.integer(256))
        )
        #expect(try read([first, second]).noted == [])
        let (list, noted) = try read([second, first])
        #expect(noted == ["tags-out-of-order:list"])
        #expect(list.entries.map(\.tag) == [3, 2])
    }

    @Test("numbers have at most 64 bits, and texts are UTF-8")
    func values() throws {
        func value(_ tag: UInt32, _ content: [UInt8]) throws -> Value? {
            try read([DERWriter.explicit(tag, content)]).list[tag]
        }
        #expect(try value(701, DERWriter.integer(Int64.max)) == .integer(.max))
        #expect(try value(701, DERWriter.integer(Int64.min)) == .integer(.min))
        let nineOctets = DERWriter.element([0x02], [0x00, 0x80, 0, 0, 0, 0, 0, 0, 0])
        #expect(try value(701, nineOctets) == .unknown(nineOctets))
        #expect(try value(1, DERWriter.set(of: [nineOctets])) == .unknown(DERWriter.set(of: [nineOctets])))
        #expect(try value(710, DERWriter.octetString([0xFF])) == .octets([0xFF]))
    }

    @Test("quirks of a value that is not of its type are not reported")
    func abandonedQuirks() throws {
        let unsorted = DERWriter.set(of: [DERWriter.integer(2), DERWriter.integer(3)], isSorted: false)
        #expect(try read([DERWriter.explicit(1, unsorted)]).noted == ["set-unsorted:purpose"])
        let odd = DERWriter.element([0x31], DERWriter.integer(3) + DERWriter.integer(2) + DERWriter.null)
        #expect(try read([DERWriter.explicit(1, odd)]).noted == ["unexpected-type:purpose"])
    }
}

@Suite("Key descriptions")
struct KeyDescriptionTests {
    private let fixture: Fixture

    init() throws { fixture = try Fixture() }

    private func quirks(_ change: (inout KeyAttestationOptions) -> Void) throws -> Set<String> {
        Set(try fixture.verify(fixture.encodings(change)).quirks.map(\.description))
    }

    @Test("a version above the newest known one is read as it, and reported")
    func versions() throws {
        for version: Int64 in [1, 2, 300, 499, 500] {
            #expect(try !quirks { $0.attestationVersion = version }.contains { $0.contains("version") })
        }
        for version: Int64 in [501, 600, .max] {
            let found = try quirks {
                $0.attestationVersion = version
                $0.keyMintVersion = version
            }
            #expect(found.contains("kd:unknown-attestation-version:\(version)"))
        }
        for version: Int64 in [0, -1, .min] {
            #expect(try fixture.code { $0.attestationVersion = version } == .attestationVersionUnsupported)
        }
    }

    @Test("a version to come is judged by every rule of the newest known one")
    func rulesOfLaterVersions() throws {
        #expect(
            try fixture.code {
                $0.attestationVersion = 600
                $0.rootOfTrust?.deviceLocked = 0
            } == .deviceUnlocked)
        #expect(
            try fixture.code {
                $0.attestationVersion = 600
                $0.origin = 2
            } == .originRefused)
    }

    @Test("elements that a later schema appends are skipped and reported, wherever they stand")
    func appended() throws {
        /// Adds an element at the end of the SEQUENCE.
        func appending(_ sequence: [UInt8], _ element: [UInt8] = DERWriter.octetString([1])) throws -> [UInt8] {
            DERWriter.element([0x30], Array(try DERNode(parsing: sequence).content) + element)
        }
        let whole = try appending(fixture.description())
        #expect(try quirks { $0.keyDescription = whole }.contains("kd:unknown-element:keyDescription"))
        let root = DERWriter.sequence(
            DERWriter.octetString([UInt8](repeating: 1, count: 32)), DERWriter.boolean(true), DERWriter.enumerated(0),
            DERWriter.octetString([UInt8](repeating: 2, count: 32)))
        #expect(try !quirks { $0.additionalAuthorizations = [704: root] }.contains { $0.contains("unknown") })
        let longer = try appending(root)
        #expect(try quirks { $0.additionalAuthorizations = [704: longer] }.contains("kd:unknown-element:rootOfTrust"))

        func application(_ package: [[UInt8]], _ rest: [[UInt8]]) -> [UInt8] {
            DERWriter.sequence(
                of: [
                    DERWriter.set(of: [DERWriter.sequence(of: package)]),
                    DERWriter.set(of: [DERWriter.octetString([UInt8](repeating: 0x11, count: 32))]),
                ] + rest)
        }
        let package = [DERWriter.octetString("com.example.app".utf8), DERWriter.integer(1)]
        func noted(_ bytes: [UInt8]) throws -> [String] {
            var noted = QuirkCollector()
            let application = try AttestationApplicationID(DERNode(parsing: bytes), noting: &noted)
            #expect(application.packages.map(\.name) == ["com.example.app"])
            #expect(application.signatureDigests.count == 1)
            return noted.found
        }
        #expect(try noted(application(package, [])) == [])
        #expect(try noted(application(package + [DERWriter.null], [])) == ["unknown-element:packageInfo"])
        #expect(try noted(application(package, [DERWriter.null])) == ["unknown-element:attestationApplicationId"])
    }

    @Test("levels and boot states are those of the schema, written as ENUMERATED")
    func enumerations() throws {
        for level in [-1, 3] {
            #expect(try fixture.code { $0.attestationSecurityLevel = level } == .keyDescriptionMalformed)
            #expect(try fixture.code { $0.keyMintSecurityLevel = level } == .keyDescriptionMalformed)
        }
        func root(_ state: [UInt8], _ key: [UInt8] = [UInt8](repeating: 1, count: 32)) throws -> RootOfTrust {
            var noted = QuirkCollector()
            return try RootOfTrust(
                DERNode(
                    parsing: DERWriter.sequence(DERWriter.octetString(key), DERWriter.boolean(false), state)),
                noting: &noted)
        }
        for state in VerifiedBootState.allCases {
            #expect(try root(DERWriter.enumerated(state.rawValue)).verifiedBootState == state)
        }
        #expect(VerifiedBootState.allCases.map(\.rawValue) == [0, 1, 2, 3])
        for state in [DERWriter.enumerated(4), DERWriter.enumerated(-1), DERWriter.integer(0)] {
            #expect(throws: DERError.self) { try root(state) }
        }
        #expect(try root(DERWriter.enumerated(0)).verifiedBootHash == nil)
        #expect(try !root(DERWriter.enumerated(0)).isDeviceLocked)
    }

    @Test("a boot key of another length than 32 is reported", arguments: [0, 31, 32, 33])
    func bootKeyLength(count: Int) throws {
        let found = try quirks { $0.rootOfTrust?.verifiedBootKey = [UInt8](repeating: 1, count: count) }
        #expect(found.contains("kd:vbk-len:\(count)") == (count != 32))
    }
}
