# LLVM for 64-bit ARM as its shared library: its own file of this name asks for the static ones, too, which were not
# unpacked, and for programs that do not run here.
set(LLVM_INCLUDE_DIRS ${GRADUS_ARM_LIBRARIES}/usr/lib/llvm-19/include)
set(LLVM_LIBRARY_DIRS ${GRADUS_ARM_LIBRARIES}/usr/lib/llvm-19/lib)
set(LLVM_NATIVE_ARCH AArch64)
if(NOT TARGET LLVM)
  add_library(LLVM SHARED IMPORTED)
  set_target_properties(LLVM PROPERTIES IMPORTED_LOCATION ${GRADUS_ARM_LIBRARIES}/usr/lib/aarch64-linux-gnu/libLLVM.so.19.1)
endif()
