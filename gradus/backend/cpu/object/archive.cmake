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
target_compile_options(gradus_standalone PRIVATE -ffunction-sections -fdata-sections -fno-stack-protector
                                                 -ffp-contract=off -fno-builtin-sqrt -fno-builtin-sqrtf)

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
set_source_files_properties(${object_directory}/kernel_archive.cpp PROPERTIES OBJECT_DEPENDS ${kernel_archive})
