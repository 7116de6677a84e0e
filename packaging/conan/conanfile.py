# SPDX-License-Identifier: MIT
"""The recipe of libmha for Conan 2: conan create packaging/conan

It packs the tree that it is in; nothing is downloaded. With -o "libmha/*:model=True" libmha_model is
built too, with PCRE2 and utf8proc of Conan.
"""

import re
from pathlib import Path

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, rmdir


class LibmhaRecipe(ConanFile):
    name = "libmha"
    license = "MIT"
    description = "Multi-head attention on CPUs: fast, exact, bitwise reproducible"
    topics = ("attention", "transformer", "inference")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "model": [True, False]}
    default_options = {"shared": False, "model": False}

    def set_version(self):
        header = Path(self.recipe_folder, "../../include/mha/mha.h").read_text(encoding="utf-8")
        self.version = ".".join(re.findall(r"^#define MHA_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header, re.M))

    def export_sources(self):
        root = str(Path(self.recipe_folder, "../.."))
        for part in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*", "man/*"):
            copy(self, part, root, self.export_sources_folder)

    def configure(self):
        self.settings.rm_safe("compiler.libcxx")
        self.settings.rm_safe("compiler.cppstd")

    def requirements(self):
        if self.options.model:
            self.requires("pcre2/[>=10.40 <11]")
            self.requires("utf8proc/[>=2.7 <3]")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        toolchain.cache_variables["MHA_BUILD_PROGRAM"] = False
        toolchain.cache_variables["MHA_BUILD_TESTS"] = False
        toolchain.cache_variables["MHA_BUILD_MODEL"] = bool(self.options.model)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, str(Path(self.package_folder, "licenses")))
        CMake(self).install()
        rmdir(self, str(Path(self.package_folder, "lib/cmake")))
        rmdir(self, str(Path(self.package_folder, "lib/pkgconfig")))
        unwanted = "*.a" if self.options.shared else "*.so*"
        for file in Path(self.package_folder, "lib").glob(unwanted):
            file.unlink()

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "mha")
        core = self.cpp_info.components["core"]
        core.set_property("cmake_target_name", "mha::mha")
        core.libs = ["mha"]
        core.system_libs = ["m", "pthread"]
        if self.options.model:
            model = self.cpp_info.components["model"]
            model.set_property("cmake_target_name", "mha::mha_model")
            model.libs = ["mha_model"]
            model.requires = ["core", "pcre2::pcre2", "utf8proc::utf8proc"]
