# The archive of kernels for object files (backend/cpu/object/): the same kernels as the library's, or, where the library
# is built with sanitizers, compiled again without. It becomes part of the library, as bytes.
set(object_directory ${CMAKE_CURRENT_LIST_DIR})
add_library(gradus_standalone OBJECT ${object_directory}/standalone_step.cpp ${object_directory}/standalone_control.cpp)
if(GRADUS_SANITIZE)
  target_sources(gradus_standalone PRIVATE ${kernel_sources})
  set(kernel_objects $<TARGET_OBJECTS:gradus_standalone>)
else()
  set(kernel_objects
      "$<FILTER:$<TARGET_OBJECTS:gradus_objects>,INCLUDE,/backend/cpu/(kernels|tiles)/[a-z0-9_]+\\.cpp\\.o$>"
      $<TARGET_OBJECTS:gradus_standalone>)
endif()
set_target_properties(gradus_standalone PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_include_directories(gradus_standalone PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_features(gradus_standalone PRIVATE cxx_std_20)
set(standalone_options -ffunction-sections -fdata-sections -fno-stack-protector -ffp-contract=off)
set(without_sqrt -fno-builtin-sqrt -fno-builtin-sqrtf)  # where it is defined
target_compile_options(gradus_standalone PRIVATE ${standalone_options} ${without_sqrt}
                                                 $<$<BOOL:${gradus_on_arm}>:-mno-outline-atomics>)

set(kernel_archive ${CMAKE_CURRENT_BINARY_DIR}/gradus_kernels.a)
add_custom_command(
  OUTPUT ${kernel_archive}
  COMMAND sh ${object_directory}/archive_kernels.sh ${CMAKE_OBJCOPY} ${CMAKE_NM} ${CMAKE_AR} ${kernel_archive} ${kernel_objects}
          ${gradus_generated_objects}
  DEPENDS ${object_directory}/archive_kernels.sh ${kernel_objects} ${gradus_generated_objects}
  COMMENT "Gathering the kernels for object files"
  COMMAND_EXPAND_LISTS VERBATIM)
add_library(gradus_kernel_archive OBJECT ${object_directory}/kernel_archive.cpp)
# No cache of compilations sees that the archive has changed.
set_target_properties(gradus_kernel_archive PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_COMPILER_LAUNCHER "")
target_include_directories(gradus_kernel_archive PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_features(gradus_kernel_archive PRIVATE cxx_std_20)
target_compile_definitions(gradus_kernel_archive PRIVATE GRADUS_KERNEL_ARCHIVE="${kernel_archive}")
set(kernel_archives ${kernel_archive})

# The same kernels for 64-bit ARM, where there is a cross compiler: then x86-64 makes object files for such machines.
if(GRADUS_OBJECTS_FOR_AARCH64)
  file(GLOB aarch64_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/backend/cpu/kernels/*.cpp
       ${CMAKE_CURRENT_SOURCE_DIR}/backend/cpu/tiles/*.cpp)
  list(FILTER aarch64_sources EXCLUDE REGEX "_avx(2|512|512_bf16)\\.cpp$")
  list(APPEND aarch64_sources ${object_directory}/standalone_step.cpp ${object_directory}/standalone_control.cpp)
  set(aarch64_folder ${CMAKE_CURRENT_BINARY_DIR}/aarch64)
  file(MAKE_DIRECTORY ${aarch64_folder})
  foreach(source ${aarch64_sources})
    get_filename_component(name ${source} NAME_WE)
    get_filename_component(folder ${source} DIRECTORY)
    get_filename_component(folder ${folder} NAME)
    set(made ${aarch64_folder}/${folder}_${name}.o)
    set(more ${standalone_options})
    if(folder STREQUAL object)
      list(APPEND more ${without_sqrt})
    endif()
    add_custom_command(
      OUTPUT ${made}
      COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${GRADUS_AARCH64_COMPILER} -std=c++20 -O3 -DNDEBUG -fPIC -mno-outline-atomics
              ${more} -I${PROJECT_SOURCE_DIR} -MD -MF ${made}.d -c ${source} -o ${made}
      DEPENDS ${source}
      DEPFILE ${made}.d
      COMMENT "Building ${folder}/${name} for 64-bit ARM"
      VERBATIM)
    list(APPEND aarch64_objects ${made})
  endforeach()
  gradus_tile_object(neon neon_tiles)
  set(aarch64_archive ${CMAKE_CURRENT_BINARY_DIR}/gradus_kernels_aarch64.a)
  add_custom_command(
    OUTPUT ${aarch64_archive}
    COMMAND sh ${object_directory}/archive_kernels.sh ${GRADUS_AARCH64_OBJCOPY} ${GRADUS_AARCH64_NM} ${GRADUS_AARCH64_AR}
            ${aarch64_archive} ${aarch64_objects} ${neon_tiles}
    DEPENDS ${object_directory}/archive_kernels.sh ${aarch64_objects} ${neon_tiles}
    COMMENT "Gathering the kernels for object files of 64-bit ARM"
    VERBATIM)
  target_compile_definitions(gradus_kernel_archive PRIVATE GRADUS_AARCH64_ARCHIVE="${aarch64_archive}")
  list(APPEND kernel_archives ${aarch64_archive})
endif()
set_source_files_properties(${object_directory}/kernel_archive.cpp PROPERTIES OBJECT_DEPENDS "${kernel_archives}")
