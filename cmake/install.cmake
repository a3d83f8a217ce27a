# The install tree: headers, both kinds of the library as built, and the package that find_package(gradus) reads.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gradus)

# The code generator is the library's own affair; every other room may be included by those who write ops or passes.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/gradus DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "backend/cpu" EXCLUDE)

foreach(kind shared static)
  if(TARGET gradus_${kind})
    set(targets gradus_${kind})
    if(kind STREQUAL static)
      list(APPEND targets gradus_archive)
    endif()
    install(TARGETS ${targets} EXPORT gradus-${kind})
    install(EXPORT gradus-${kind} NAMESPACE gradus:: DESTINATION ${package_dir})
  endif()
endforeach()

get_property(components GLOBAL PROPERTY gradus_components)
if(components)
  install(TARGETS ${components} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/gradus-config.cmake.in ${PROJECT_BINARY_DIR}/gradus-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gradus-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gradus-config.cmake ${PROJECT_BINARY_DIR}/gradus-config-version.cmake
              ${CMAKE_CURRENT_LIST_DIR}/compiler.cmake
        DESTINATION ${package_dir})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
