// CocoaPods has no swift-crypto. On Apple's systems that package is CryptoKit under another name.
@_exported import CryptoKit
