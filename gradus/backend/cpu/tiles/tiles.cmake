# The tiles of matrix products: gradus_emit_tiles writes one object file an instruction set; they become part of gradus.
# The emitter is optimized and without sanitizers in every preset: it runs once, and its time is part of the build's.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(gradus_isas avx2 avx512)
elseif(gradus_on_arm)
  set(gradus_isas neon)
else()
  message(FATAL_ERROR "gradus computes on x86-64 processors (AVX2 or AVX-512) and on 64-bit ARM; "
                      "this one is ${CMAKE_SYSTEM_PROCESSOR}")
endif()

set(tiles_directory ${CMAKE_CURRENT_LIST_DIR})
if(CMAKE_CROSSCOMPILING)  # it has to run here
  find_program(GRADUS_HOST_COMPILER NAMES g++ clang++-19 REQUIRED DOC "C++ compiler of this machine, for the emitter")
  find_program(GRADUS_HOST_LLVM_CONFIG NAMES llvm-config-19 llvm-config REQUIRED DOC "Tells where this machine's LLVM is")
  foreach(kind include lib)
    execute_process(COMMAND ${GRADUS_HOST_LLVM_CONFIG} --${kind}dir OUTPUT_VARIABLE host_${kind} OUTPUT_STRIP_TRAILING_WHITESPACE
                    COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  set(emitter ${CMAKE_CURRENT_BINARY_DIR}/host/gradus_emit_tiles)
  file(GLOB_RECURSE emitter_sources CONFIGURE_DEPENDS ${tiles_directory}/emitter/*.cpp)
  list(APPEND emitter_sources ${tiles_directory}/../codegen/expand_masks.cpp)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/host)
  add_custom_command(
    OUTPUT ${emitter}
    COMMAND ${GRADUS_HOST_COMPILER} -std=c++20 -O1 -I${PROJECT_SOURCE_DIR} -isystem ${host_include}
            ${emitter_sources} -o ${emitter} -L${host_lib} -lLLVM
    DEPENDS ${emitter_sources} ${tiles_directory}/table.h ${tiles_directory}/../processors.h
    COMMENT "Building gradus_emit_tiles for this machine"
    VERBATIM)
else()
  file(GLOB emitter_sources CONFIGURE_DEPENDS ${tiles_directory}/emitter/*.cpp)
  add_executable(gradus_emit_tiles ${emitter_sources} ${tiles_directory}/../codegen/expand_masks.cpp)
  target_include_directories(gradus_emit_tiles PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(gradus_emit_tiles SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
  target_compile_features(gradus_emit_tiles PRIVATE cxx_std_20)
  target_compile_options(gradus_emit_tiles PRIVATE -Wall -Wextra -Wpedantic -Wsign-conversion $<$<BOOL:${GRADUS_WERROR}>:-Werror> -O1)
  target_link_directories(gradus_emit_tiles PRIVATE ${LLVM_LIBRARY_DIRS})
  target_link_libraries(gradus_emit_tiles PRIVATE LLVM)
  set(emitter gradus_emit_tiles)
endif()

# gradus_tile_object(isa variable): the object file of these tiles.
function(gradus_tile_object isa variable)
  set(tiles_object ${CMAKE_CURRENT_BINARY_DIR}/tiles_${isa}.o)
  add_custom_command(
    OUTPUT ${tiles_object}
    COMMAND ${emitter} ${isa} ${tiles_object}
    DEPENDS ${emitter}
    COMMENT "Emitting the tiles of ${isa}"
    VERBATIM)
  set(${variable} ${tiles_object} PARENT_SCOPE)
endfunction()

foreach(isa ${gradus_isas})
  gradus_tile_object(${isa} tiles_object)
  set_source_files_properties(${tiles_object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  list(APPEND gradus_generated_objects ${tiles_object})
endforeach()

# Both kinds of library take them: they depend on this target, so that one rule writes them under any generator.
add_custom_target(gradus_tiles DEPENDS ${gradus_generated_objects})
