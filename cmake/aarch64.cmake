# For 64-bit ARM by a cross compiler, with the libraries that tools/setup.sh arm has unpacked into build/arm64; qemu runs
# the programs. Only the preset aarch64 uses this file: on an ARM machine the usual presets build (README.md).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

get_filename_component(gradus_sources ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)
set(GRADUS_ARM_LIBRARIES ${gradus_sources}/build/arm64 CACHE PATH "The folder that tools/setup.sh arm makes")
if(NOT EXISTS ${GRADUS_ARM_LIBRARIES}/installed)
  message(FATAL_ERROR "The libraries for 64-bit ARM are not in ${GRADUS_ARM_LIBRARIES}: tools/setup.sh arm brings them")
endif()
set(CMAKE_FIND_ROOT_PATH ${GRADUS_ARM_LIBRARIES})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${GRADUS_ARM_LIBRARIES}/usr/lib/aarch64-linux-gnu/pkgconfig)  # not the machine's own packages
set(LLVM_DIR ${CMAKE_CURRENT_LIST_DIR}/aarch64 CACHE PATH "" FORCE)
# GCC notes that it passes pairs of doubles as C++14 does, not as its versions before 10.1 did: there are none here.
set(CMAKE_CXX_FLAGS_INIT "-Wno-psabi -isystem ${GRADUS_ARM_LIBRARIES}/usr/include -isystem ${GRADUS_ARM_LIBRARIES}/usr/include/aarch64-linux-gnu")
# Libraries that are named without a folder are there, too.
set(folder ${GRADUS_ARM_LIBRARIES}/usr/lib/aarch64-linux-gnu)
set(folders ${folder}:${GRADUS_ARM_LIBRARIES}/lib/aarch64-linux-gnu)
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-L${folder} -Wl,-rpath-link,${folders}")
endforeach()
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64;-L;${GRADUS_ARM_LIBRARIES})
