# The contents of the wheels, which python/wheel packs: component `wheel` is the package itself without its module, which is
# component `own_abi` or `stable_abi`, and component `sdk`, whose prefix is the package's folder sdk, an install tree around
# the library that has LLVM inside. Wheels hold no symbolic links: the library's file has the name by which programs look
# for it.
set(bindings gradus_python)
if(TARGET gradus_python_abi3)
  list(APPEND bindings gradus_python_abi3)
endif()
set_target_properties(${bindings} PROPERTIES INSTALL_RPATH $ORIGIN/sdk/${CMAKE_INSTALL_LIBDIR})
install(TARGETS gradus_python LIBRARY DESTINATION gradus COMPONENT own_abi EXCLUDE_FROM_ALL)
if(TARGET gradus_python_abi3)
  install(TARGETS gradus_python_abi3 LIBRARY DESTINATION gradus COMPONENT stable_abi EXCLUDE_FROM_ALL)
endif()
set(packaged_stubs ${generated_stubs})
list(TRANSFORM packaged_stubs PREPEND gradus/)
foreach(file ${modules} ${packaged_stubs})
  get_filename_component(folder ${file} DIRECTORY)
  install(FILES ${PROJECT_BINARY_DIR}/python/${file} DESTINATION ${folder} COMPONENT wheel EXCLUDE_FROM_ALL)
endforeach()
# Python runs a .pth as it starts: Keras then finds the backend by KERAS_BACKEND=gradus alone.
install(FILES ${CMAKE_CURRENT_SOURCE_DIR}/keras_gradus.pth DESTINATION . COMPONENT wheel EXCLUDE_FROM_ALL)

if(NOT TARGET gradus_command OR NOT GRADUS_INSTALL)
  message(STATUS "gradus: no wheel, which needs GRADUS_COMMAND and GRADUS_INSTALL")
  return()
endif()
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gradus)
install(TARGETS gradus_bundled EXPORT gradus-bundled LIBRARY COMPONENT sdk EXCLUDE_FROM_ALL)
install(TARGETS gradus_command RUNTIME COMPONENT sdk EXCLUDE_FROM_ALL)
install(EXPORT gradus-bundled FILE gradus-shared.cmake NAMESPACE gradus:: DESTINATION ${package_dir}
        COMPONENT sdk EXCLUDE_FROM_ALL)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/gradus DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT sdk EXCLUDE_FROM_ALL
        FILES_MATCHING PATTERN "*.h" PATTERN "backend/cpu" EXCLUDE)
install(FILES ${PROJECT_BINARY_DIR}/gradus-config.cmake ${PROJECT_BINARY_DIR}/gradus-config-version.cmake
              ${PROJECT_SOURCE_DIR}/cmake/compiler.cmake
        DESTINATION ${package_dir} COMPONENT sdk EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION . COMPONENT sdk EXCLUDE_FROM_ALL)

add_custom_target(gradus_wheel_parts)
add_dependencies(gradus_wheel_parts gradus_bundled gradus_command gradus_python_package ${bindings})

# Tests of the wheel that tools/setup.sh python and the target above allow to make: in a new environment, and in one process
# with what brings a compiler of its own.
if(GRADUS_TESTS)
  set(tests ${CMAKE_CURRENT_SOURCE_DIR}/tests/wheel)
  set(wheel_folder ${PROJECT_BINARY_DIR}/wheel)
  add_test(NAME python_wheel_is_made COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/wheel/make.sh ${wheel_folder} ${PROJECT_BINARY_DIR}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set(wheel_tests python_wheel_beside_others)
  function(test_installed name python)
    add_test(NAME ${name} COMMAND ${Python_EXECUTABLE} ${tests}/installed.py ${wheel_folder} ${PROJECT_BINARY_DIR}/wheel-tests
                                  ${python})
    set(wheel_tests ${wheel_tests} ${name} PARENT_SCOPE)
  endfunction()
  test_installed(python_wheel_in_a_new_environment ${Python_EXECUTABLE})
  if(TARGET gradus_python_abi3 AND NOT GRADUS_NEWER_PYTHON STREQUAL Python_EXECUTABLE)
    test_installed(python_wheel_of_the_stable_abi ${GRADUS_NEWER_PYTHON})
  endif()
  add_test(NAME python_wheel_beside_others COMMAND ${Python_EXECUTABLE} ${tests}/beside.py ${wheel_folder}
                                                   ${PROJECT_BINARY_DIR}/wheel-tests)
  set_tests_properties(python_wheel_is_made PROPERTIES FIXTURES_SETUP gradus_wheel RESOURCE_LOCK build_tree LABELS "full;wheel")
  set_tests_properties(${wheel_tests} PROPERTIES
                       FIXTURES_REQUIRED gradus_wheel LABELS "full;wheel" TIMEOUT 1500)
endif()
