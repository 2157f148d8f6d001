Pod::Spec.new do |s|
  s.name = 'SynheartAuthContract'
  s.module_name = 'AuthContract'
  s.version = '1.0.0'
  s.summary = 'Part of SynheartAuth.'
  s.homepage = 'https://github.com/synheart-ai/synheart-auth'
  s.license = { :type => 'Apache-2.0', :file => 'LICENSE' }
  s.author = 'Synheart AI'
  s.source = { :git => 'https://github.com/synheart-ai/synheart-auth.git', :tag => s.version.to_s }
  s.source_files = 'Sources/AuthContract/**/*.swift'
  s.dependency 'SynheartAuthBytes', s.version.to_s
  s.dependency 'SynheartAuthStrictJSON', s.version.to_s
  s.dependency 'SynheartAuthCrypto', s.version.to_s
  s.platform = :ios, '16.0'
  s.swift_version = '6.0'
  s.pod_target_xcconfig = {
    'OTHER_SWIFT_FLAGS' => '$(inherited) -package-name synheart_auth -enable-upcoming-feature ExistentialAny -enable-upcoming-feature InternalImportsByDefault -enable-upcoming-feature MemberImportVisibility -enable-upcoming-feature NonisolatedNonsendingByDefault',
  }
end
