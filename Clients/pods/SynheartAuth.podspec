Pod::Spec.new do |s|
  s.name = 'SynheartAuth'
  s.module_name = 'SynheartAuth'
  s.version = '1.0.0'
  s.summary = 'A hardware-backed identity of the device for each app.'
  s.homepage = 'https://github.com/synheart-ai/synheart-auth'
  s.license = { :type => 'Apache-2.0', :file => 'LICENSE' }
  s.author = 'Synheart AI'
  s.source = { :git => 'https://github.com/synheart-ai/synheart-auth.git', :tag => s.version.to_s }
  # Swift and C are in one pod: the C functions call Swift functions, which would be impossible from a separate framework.
  s.source_files = 'Sources/SynheartAuth/**/*.swift', 'Sources/CSynheartAuth/**/*.{c,h}'
  s.private_header_files = 'Sources/CSynheartAuth/**/*.h'
  s.resource_bundles = { 'SynheartAuth_Privacy' => ['Sources/SynheartAuth/PrivacyInfo.xcprivacy'] }
  s.dependency 'SynheartAuthBytes', s.version.to_s
  s.dependency 'SynheartAuthContract', s.version.to_s
  s.dependency 'SynheartAuthStrictJSON', s.version.to_s
  s.dependency 'SynheartAuthCrypto', s.version.to_s
  s.platform = :ios, '16.0'
  s.swift_version = '6.0'
  s.pod_target_xcconfig = {
    'OTHER_SWIFT_FLAGS' => '$(inherited) -package-name synheart_auth -enable-upcoming-feature ExistentialAny -enable-upcoming-feature InternalImportsByDefault -enable-upcoming-feature MemberImportVisibility -enable-upcoming-feature NonisolatedNonsendingByDefault',
  }
end
