internal import Flutter
internal import Foundation

/// A message on the channel does not have the shape that the contract requires. The error's text quotes nothing of that message.
struct MalformedMessage: Error {
    let message: String
}

/// The required form of a value on the platform channel. `contract/channel.json` has the shapes of all messages.
///
/// A shape is strict: it refuses absent and unknown fields, other types, and values beyond a limit.
indirect enum Shape: Sendable {
    /// A text of at most `max` UTF-16 code units.
    case text(Int)
    /// At most this many bytes.
    case bytes(Int)
    /// A whole number in a range.
    case integer(ClosedRange<Int64>)
    /// A finite number.
    case number
    /// True or false.
    case flag
    /// One of these texts.
    case choice([String])
    /// A list of at most `max` values of one shape.
    case items(Shape, max: Int)
    /// A dictionary with exactly these fields.
    case message(KeyValuePairs<String, Shape>)
    /// A value of a shape, or null.
    case optional(Shape)

    /// Throws an error that names the place, unless the value has this shape.
    func check(_ value: Any?, _ place: String) throws(MalformedMessage) {
        switch self {
        case .optional(let shape):
            if !Self.isNull(value) { try shape.check(value, place) }
        case .text(let max):
            guard let text = value as? String else { throw wrong(value, place) }
            guard text.utf16.count <= max else { throw beyond(place) }
        case .bytes(let max):
            guard let bytes = value as? FlutterStandardTypedData, bytes.type == .uInt8 else {
                throw wrong(value, place)
            }
            guard bytes.data.count <= max else { throw beyond(place) }
        case .integer(let range):
            guard let number = value as? NSNumber, number.kind == .integer else { throw wrong(value, place) }
            guard range.contains(number.int64Value) else { throw beyond(place) }
        case .number:
            guard let number = value as? NSNumber, number.kind == .real else { throw wrong(value, place) }
            guard number.doubleValue.isFinite else { throw beyond(place) }
        case .flag:
            guard let number = value as? NSNumber, number.kind == .boolean else { throw wrong(value, place) }
        case .choice(let values):
            guard let text = value as? String else { throw wrong(value, place) }
            guard values.contains(text) else { throw beyond(place) }
        case .items(let shape, let max):
            guard let items = value as? [Any] else { throw wrong(value, place) }
            guard items.count <= max else { throw beyond(place) }
            for (index, item) in items.enumerated() { try shape.check(item, "\(place)[\(index)]") }
        case .message(let shapes):
            guard let fields = value as? [AnyHashable: Any] else { throw wrong(value, place) }
            for (name, shape) in shapes {
                guard let field = fields[name] else {
                    throw MalformedMessage(message: "\(place): the field \(name) is absent")
                }
                try shape.check(field, "\(place).\(name)")
            }
            guard fields.count == shapes.count else {
                let names = shapes.map(\.key).joined(separator: ", ")
                throw MalformedMessage(message: "\(place): expected only the fields \(names)")
            }
        }
    }

    /// The expected type and range, for errors.
    private var expectation: String {
        switch self {
        case .text(let max): "a text of at most \(max) characters"
        case .bytes(let max): "at most \(max) bytes"
        case .integer(let range): "a whole number from \(range.lowerBound) to \(range.upperBound)"
        case .number: "a finite number"
        case .flag: "true or false"
        case .choice(let values): "one of \(values.joined(separator: ", "))"
        case .items(_, let max): "a list of at most \(max)"
        case .message: "a message"
        case .optional(let shape): shape.expectation
        }
    }

    private func wrong(_ value: Any?, _ place: String) -> MalformedMessage {
        let found = value.map { Self.isNull($0) ? "null" : "\(type(of: $0))" } ?? "null"
        return MalformedMessage(message: "\(place): expected \(expectation), found \(found)")
    }

    private func beyond(_ place: String) -> MalformedMessage {
        MalformedMessage(message: "\(place): expected \(expectation)")
    }

    private static func isNull(_ value: Any?) -> Bool { value == nil || value is NSNull }
}

/// A method of the channel.
struct Call: Sendable {
    /// The message that the method takes.
    let arguments: Shape
    /// The method's result; nil if it returns nothing.
    let result: Shape?

    init(_ arguments: KeyValuePairs<String, Shape>, _ result: Shape? = nil) {
        self.arguments = .message(arguments)
        self.result = result
    }
}

/// The fields of a message that was checked. A field that the shape does not have reads as an empty value.
struct Fields {
    private let values: [AnyHashable: Any]

    init(_ value: Any?, _ shape: Shape, _ place: String) throws(MalformedMessage) {
        try shape.check(value, place)
        values = value as? [AnyHashable: Any] ?? [:]
    }

    func text(_ name: String) -> String { optionalText(name) ?? "" }
    func optionalText(_ name: String) -> String? { values[name] as? String }
    func bytes(_ name: String) -> [UInt8] { (values[name] as? FlutterStandardTypedData).map { Array($0.data) } ?? [] }
    func flag(_ name: String) -> Bool { (values[name] as? NSNumber)?.boolValue ?? false }
    func number(_ name: String) -> Double { (values[name] as? NSNumber)?.doubleValue ?? 0 }
    func integer(_ name: String) -> Int64 { optionalInteger(name) ?? 0 }
    func optionalInteger(_ name: String) -> Int64? { (values[name] as? NSNumber)?.int64Value }
    func texts(_ name: String) -> [String] { values[name] as? [String] ?? [] }
    func headers(_ name: String) -> [(String, String)] {
        (values[name] as? [[AnyHashable: Any]] ?? []).map {
            ($0["name"] as? String ?? "", $0["value"] as? String ?? "")
        }
    }
}

extension NSNumber {
    fileprivate enum Kind { case boolean, integer, real }

    /// The codec's type of the value. Numbers and booleans are one class in Objective-C; the type encoding distinguishes them.
    fileprivate var kind: Kind {
        switch String(cString: objCType) {
        case "c", "B": .boolean
        case "d", "f": .real
        default: .integer
        }
    }
}
