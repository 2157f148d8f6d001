@_exported import Foundation

open class LAContext: NSObject { public override init() {}; public var localizedReason = "" }
