# The contents of the .deb files, which cmake/debian/make.sh packs: a component for each package, named like it, whose prefix is
# /usr. Libraries are where the system has those of its architecture; the library is the one with LLVM inside.
if(NOT CMAKE_LIBRARY_ARCHITECTURE OR NOT TARGET gradus_command OR NOT GRADUS_INSTALL)
  message(FATAL_ERROR "gradus: GRADUS_PACKAGES needs a system of dpkg, GRADUS_COMMAND and GRADUS_INSTALL")
endif()
set(library libgradus${PROJECT_VERSION_MAJOR})
set(libraries lib/${CMAKE_LIBRARY_ARCHITECTURE})
set(package_dir ${libraries}/cmake/gradus)

install(TARGETS gradus_bundled EXPORT gradus-packaged LIBRARY DESTINATION ${libraries} COMPONENT ${library} EXCLUDE_FROM_ALL)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/gradus DESTINATION include COMPONENT libgradus-dev EXCLUDE_FROM_ALL
        FILES_MATCHING PATTERN "*.h" PATTERN "backend/cpu" EXCLUDE)
install(EXPORT gradus-packaged FILE gradus-shared.cmake NAMESPACE gradus:: DESTINATION ${package_dir}
        COMPONENT libgradus-dev EXCLUDE_FROM_ALL)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/gradus-config.cmake.in ${PROJECT_BINARY_DIR}/packaged/gradus-config.cmake
                              INSTALL_DESTINATION ${package_dir} INSTALL_PREFIX /usr)
install(FILES ${PROJECT_BINARY_DIR}/packaged/gradus-config.cmake ${PROJECT_BINARY_DIR}/gradus-config-version.cmake
              ${CMAKE_CURRENT_LIST_DIR}/compiler.cmake
        DESTINATION ${package_dir} COMPONENT libgradus-dev EXCLUDE_FROM_ALL)
install(CODE "file(CREATE_LINK libgradus.so.${PROJECT_VERSION_MAJOR} \${CMAKE_INSTALL_PREFIX}/${libraries}/libgradus.so SYMBOLIC)"
        COMPONENT libgradus-dev EXCLUDE_FROM_ALL)

# The system finds the library by itself.
install(TARGETS gradus_command RUNTIME DESTINATION bin COMPONENT gradus EXCLUDE_FROM_ALL)
install(CODE "file(RPATH_REMOVE FILE \${CMAKE_INSTALL_PREFIX}/bin/gradus)" COMPONENT gradus EXCLUDE_FROM_ALL)

get_property(components GLOBAL PROPERTY gradus_components)
if(components)  # no program links them: they are not among the system's libraries
  install(TARGETS ${components} LIBRARY DESTINATION ${libraries}/gradus COMPONENT gradus-ranks EXCLUDE_FROM_ALL)
endif()

set(GRADUS_MAINTAINER "Gradus <gradus@localhost.invalid>" CACHE STRING "The maintainer of the .deb files: name and address")
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
foreach(file control changelog copyright)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/debian/${file}.in ${PROJECT_BINARY_DIR}/packaged/debian/${file} @ONLY)
endforeach()

set(packages ${PROJECT_BINARY_DIR}/packages)
add_custom_target(gradus_packages DEPENDS gradus_bundled gradus_command ${components} USES_TERMINAL VERBATIM
                  COMMAND ${CMAKE_CURRENT_LIST_DIR}/debian/make.sh ${packages} ${PROJECT_BINARY_DIR})
