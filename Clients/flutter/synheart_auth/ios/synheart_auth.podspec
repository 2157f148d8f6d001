# Build the plugin with the Swift package beside this file. This podspec is for projects without Swift Package Manager;
# their Podfile names the pods of the Swift client (README.md, CocoaPods).
Pod::Spec.new do |s|
  s.name = 'synheart_auth'
  s.version = '1.0.0'
  s.summary = 'A hardware-backed identity of the device for each app, and signatures that prove it.'
  s.homepage = 'https://github.com/synheart-ai/synheart-auth'
  s.license = { :type => 'Apache-2.0', :file => '../LICENSE' }
  s.author = 'Synheart AI'
  s.source = { :path => '.' }
  s.source_files = 'synheart_auth/Sources/synheart_auth/**/*.swift'
  s.dependency 'Flutter'
  s.dependency 'SynheartAuth', s.version.to_s
  s.dependency 'SynheartAuthContract', s.version.to_s
  s.platform = :ios, '16.0'
  s.swift_version = '6.0'
  s.pod_target_xcconfig = {
    'DEFINES_MODULE' => 'YES',
    'OTHER_SWIFT_FLAGS' => '$(inherited) -enable-upcoming-feature ExistentialAny -enable-upcoming-feature InternalImportsByDefault -enable-upcoming-feature MemberImportVisibility -enable-upcoming-feature NonisolatedNonsendingByDefault',
  }
end
