import org.jetbrains.kotlin.gradle.dsl.JvmTarget
import org.jetbrains.kotlin.gradle.dsl.KotlinVersion

plugins {
    alias(libs.plugins.android.library)
}

description = "Device identity: the native functions that Synheart Core calls"
extra["publishedComponent"] = "release"
apply(from = "../gradle/publish.gradle.kts")

android {
    namespace = "ai.synheart.auth.runtime"
    compileSdk = 36

    defaultConfig {
        minSdk = 26
        consumerProguardFiles("consumer-rules.pro")
    }

    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_1_8
        targetCompatibility = JavaVersion.VERSION_1_8
    }

    ndkVersion = libs.versions.ndk.get()
    externalNativeBuild {
        cmake {
            path = file("src/main/c/CMakeLists.txt")
            version = libs.versions.cmake.get()
        }
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
}
