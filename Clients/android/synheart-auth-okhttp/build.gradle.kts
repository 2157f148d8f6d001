import org.jetbrains.kotlin.gradle.dsl.JvmTarget
import org.jetbrains.kotlin.gradle.dsl.KotlinVersion

plugins {
    alias(libs.plugins.android.library)
}

description = "Device identity: requests of an OkHttpClient"
extra["publishedComponent"] = "release"
apply(from = "../gradle/publish.gradle.kts")

android {
    namespace = "ai.synheart.auth.okhttp"
    compileSdk = 36

    defaultConfig {
        minSdk = 26
    }

    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_1_8
        targetCompatibility = JavaVersion.VERSION_1_8
    }

    publishing {
        singleVariant("release") {
            withSourcesJar()
            withJavadocJar()
        }
    }
}

kotlin {
    explicitApi()
    // Sets the version of Kotlin's standard library in the POM. An app's compiler must be able to read this library.
    coreLibrariesVersion = libs.versions.kotlin.stdlib.get()
    compilerOptions {
        allWarningsAsErrors = true
        // Apps with Kotlin 2.0 can read the result. The compiler warns that this language version is old.
        languageVersion = KotlinVersion.KOTLIN_2_1
        apiVersion = KotlinVersion.KOTLIN_2_1
        jvmTarget = JvmTarget.JVM_1_8
        freeCompilerArgs.add("-Xsuppress-version-warnings")
    }
}

dependencies {
    api(project(":synheart-auth"))
    api(libs.okhttp)
}

// The tests run in a JVM against stand-ins: synheart-auth-okhttp/test. They are not Gradle tests.
android.sourceSets.named("test") { kotlin.directories.clear() }
