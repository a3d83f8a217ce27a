# The tiles of matrix products: gradus_emit_tiles writes one object file an instruction set; they become part of gradus.
# The emitter is optimized and without sanitizers in every preset: it runs once, and its time is part of the build's.
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  message(FATAL_ERROR "gradus computes on x86-64 processors (AVX2 or AVX-512); this one is ${CMAKE_SYSTEM_PROCESSOR}")
endif()

set(tiles_directory ${CMAKE_CURRENT_LIST_DIR})
file(GLOB emitter_sources CONFIGURE_DEPENDS ${tiles_directory}/emitter/*.cpp)
add_executable(gradus_emit_tiles ${emitter_sources})
target_include_directories(gradus_emit_tiles PRIVATE ${PROJECT_SOURCE_DIR})
target_include_directories(gradus_emit_tiles SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
target_compile_features(gradus_emit_tiles PRIVATE cxx_std_20)
target_compile_options(gradus_emit_tiles PRIVATE -Wall -Wextra -Wpedantic -Wsign-conversion $<$<BOOL:${GRADUS_WERROR}>:-Werror> -O1)
target_link_directories(gradus_emit_tiles PRIVATE ${LLVM_LIBRARY_DIRS})
target_link_libraries(gradus_emit_tiles PRIVATE LLVM)

foreach(isa avx2 avx512)
  set(tiles_object ${CMAKE_CURRENT_BINARY_DIR}/tiles_${isa}.o)
  add_custom_command(
    OUTPUT ${tiles_object}
    COMMAND gradus_emit_tiles ${isa} ${tiles_object}
    DEPENDS gradus_emit_tiles
    COMMENT "Emitting the tiles of ${isa}"
    VERBATIM)
  set_source_files_properties(${tiles_object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  list(APPEND gradus_generated_objects ${tiles_object})
endforeach()

# Both kinds of library take them: they depend on this target, so that one rule writes them under any generator.
add_custom_target(gradus_tiles DEPENDS ${gradus_generated_objects})
